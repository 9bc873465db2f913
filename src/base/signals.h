// Requests to end this process: SIGINT, SIGTERM, SIGHUP and SIGUSR1, or request_end().
//
// A command that runs a job calls hold_signals() first in main(), and catch_signals() before anything that
// may make a request. After that
//   - the first request ends the process immediately with exit code 8 and a message; after defer_end() it
//     only sets a flag, which the work polls where it can stop (training: between steps);
//   - a second SIGINT, SIGTERM or SIGHUP at least half a second after the first request ends the process
//     immediately in both cases. SIGUSR1 and request_end() do not count as a second request.
// A separate thread reacts, so a main thread that computes or waits causes no delay. Signals that were
// ignored when the process started (nohup) stay ignored.
#pragma once

#include <functional>
#include <string>

namespace redco {

// Installs the handlers and starts the thread. Signals that the process blocked before exec are delivered
// now.
void catch_signals();
// Blocks these signals until catch_signals(), also across an exec(): none is lost, and none ends the process
// without a message.
void hold_signals();

// Makes a request as SIGUSR1 does; messages name `signal`. Any thread may call it, also before
// catch_signals(), which then answers it.
void request_end(int signal);
// Signal number of the first request; 0 if there was none.
int end_requested();
// "SIGTERM"
std::string signal_text(int signal);

// From now on there is something to save: the first request only sets the flag.
void defer_end();

// The second half of the message printed when a request ends the process; default "nothing had to be saved".
void set_end_note(std::string note);
// Sets how that message is printed; by default it is written to stderr. `print` runs on the signal thread
// while other threads may hold any lock.
void set_end_printer(std::function<void(const std::string& message)> print);

// Prints the message, removes unfinished temporary files (base/file.h) and ends the process. Any thread may
// call it.
[[noreturn]] void end_process(int code, const std::string& message);

}  // namespace redco

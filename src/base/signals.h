// Requests to end this process: SIGINT, SIGTERM, SIGHUP and SIGUSR1, or request_end().
//
// A command that runs a job calls catch_signals() first thing in main(). From then on
//   - the first request ends the process at once with code 8 and a message, or, after defer_end(), sets a
//     flag that is polled where the work can stop (training: between steps);
//   - a second SIGINT, SIGTERM or SIGHUP, at least half a second after the first request, ends the process at
//     once in either case. SIGUSR1 and request_end() only ask.
// A thread of its own reacts, so a main thread that computes or waits delays nothing. Signals that were
// ignored when the process started (nohup) stay ignored.
#pragma once

#include <functional>
#include <string>

namespace redco {

// Installs the handlers and starts the thread. Signals that the process blocked before exec arrive now.
void catch_signals();
// Blocks the same signals, so that none is lost between exec() and the new program's catch_signals().
void hold_signals();

// Asks as SIGUSR1 does; messages name `signal`. Any thread.
void request_end(int signal);
// The first request's signal number; 0: none has arrived.
int end_requested();
// "SIGTERM"
std::string signal_text(int signal);

// There is something to save from now on: a first request only sets the flag.
void defer_end();

// The second half of the message of an end at once; "nothing had to be saved" unless it was set.
void set_end_note(std::string note);
// How that message reaches the user; write to stderr unless it was set. It runs on the signal thread, while
// any other thread may hold any lock.
void set_end_printer(std::function<void(const std::string& message)> print);

// Prints the message, removes unfinished temporary files (base/file.h) and ends the process. Any thread.
[[noreturn]] void end_process(int code, const std::string& message);

}  // namespace redco

// A message for signals that end a program because of a mistake in its code: SIGSEGV, SIGBUS, SIGFPE, SIGILL.
#pragma once

namespace redco {

// From now on such a signal first writes one line to stderr, which names the function of a user's shared
// object that runs on the thread, if there is one. Then the signal ends the process as it would without a
// message.
void report_crashes();

}  // namespace redco

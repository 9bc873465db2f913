// The watchdog of this process: a thread that reports what base/activity.h knows, and that ends the process
// when the job must end. It uses neither MPI nor tensors, so it works before MPI starts and while the main
// thread hangs.
//
//   ranks of redco's launcher    REDCO_WATCH names the launcher's WatchServer: watched from the first line of
//                                main() on
//   ranks started by hand        each watches itself until join(); then the first rank's server watches all
//   a process alone              watches itself
//
// Ending means: one message on stderr at most, then _exit(5). fault.timeout = 0 turns all deadlines off; a
// server that dies ends its ranks all the same.
#pragma once

#include <string>

namespace redco::watchdog {

// Call it first in main(). Takes REDCO_WATCH out of the environment, so that children don't report as this
// rank. Does nothing without that variable.
void start();

// True when a server watches this process.
bool is_watched();

// Without a server: this process ends itself when it has made no progress for `timeout` seconds (0: never).
// A wait for other ranks counts as no progress.
void watch_alone(double timeout);

// Starts a server in this process and returns its address for the others' join(). IoError.
std::string serve(int n_ranks, double timeout);

// Reports as `rank` to the server at `address` from now on.
void join(const std::string& address, int rank);

// The process ends with this code, in order: nobody watches it any more. To be called after the last
// collective.
void finish(int code);

}  // namespace redco::watchdog

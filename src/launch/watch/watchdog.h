// The watchdog of this process: a thread that reports the state of base/activity.h and ends the process when
// the job must end. It uses neither MPI nor tensors, so it works before MPI starts and while the main thread
// hangs.
//
//   ranks of redco's launcher    the launcher's WatchServer (its address is in REDCO_WATCH) watches them from
//   the
//                                first line of main() on
//   ranks started by hand        each watches itself until join(); then the first rank's server watches all
//   a single process             watches itself
//
// It ends the process with at most one message on stderr and _exit(5). fault.timeout = 0 turns all deadlines
// off; a server that dies still ends its ranks.
#pragma once

#include <functional>
#include <string>

namespace redco::watchdog {

// Call it first in main(). Removes REDCO_WATCH from the environment, so that child processes do not report as
// this rank. Does nothing without that variable.
void start();

// True when a server watches this process.
bool is_watched();

// Without a server: this process ends itself after `timeout` seconds without progress (0: never). Waiting for
// other ranks is not progress. Before the end, record(message) is called on another thread, for at most 3 s.
void watch_alone(double timeout, std::function<void(const std::string& message)> record = {});

// Starts a server in this process; returns its address for join() on the other ranks. IoError.
std::string serve(int n_ranks, double timeout);

// From now on, reports as `rank` to the server at `address`.
void join(const std::string& address, int rank);

// Ends the watching before a regular end with this code. Call it after the last collective.
void finish(int code);

}  // namespace redco::watchdog

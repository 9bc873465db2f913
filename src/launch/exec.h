// Runs the ranks under mpirun and waits for them.
#pragma once

#include <string>
#include <vector>

#include "launch/mpirun_command.h"

namespace redco {

struct ExecOptions {
  double fault_timeout = 0;  // s: the watchdog's deadline (launch/watch_judge.h); 0: none
  // The ranks have something to save (train): the first SIGINT, SIGTERM or SIGHUP here asks them to, and they
  // may take their time. Otherwise, and from the second signal on, all ends within 5 s. SIGUSR1 only asks.
  // Requests reach the ranks through the WatchServer, also those that start later.
  bool save_on_signal = false;
  // Every SIGINT is passed on as SIGUSR1 and ends nothing.
  bool passes_interrupts = false;
  int stderr_fd = 2;  // where messages go
  std::string root;   // of /proc and /sys: "" in earnest, a folder with such files in tests
};

// Runs mpirun with its program as a child in a process group of its own (so that ^C reaches this
// process only), passing stdout through, standard input where options.input says so, stderr without mpirun's
// banners, and signals on. One message reaches the user when a rank fails: the rank's own, the watchdog's, or
// a line here if a rank or mpirun was killed. Returns the exit code of the job: the ranks' own, rank_failed
// (5) when a rank was killed, stuck or lost, or mpirun was killed or unable to start, interrupted (8) when
// signals ended it. UsageError when mpirun isn't there. REQUIRES: one call at a time, from the main thread,
// in a process without MPI.
//
// Ranks report to a WatchServer here, whose address is in their environment. An end by force (a verdict of
// the server, a second signal, mpirun gone before its ranks) is an order to all ranks, SIGTERM to mpirun, and
// after 2 s SIGKILL to mpirun and every process of the job on this host. Ranks on a host that the order does
// not reach end themselves within fault_timeout.
int exec_under_mpirun(const Mpirun& mpirun, const ExecOptions& options = {});

// The standard output of a command (argv[0] is looked up in PATH), at most max_bytes; throws
// Error(rank_failed) with its stderr when it ends with another status than 0 or takes longer than `seconds`.
std::string output_of(const std::vector<std::string>& argv, double seconds, i64 max_bytes = i64{1} << 20);
// The same of what mpirun's program writes on all hosts.
std::string output_under_mpirun(const Mpirun& mpirun, double seconds, i64 max_bytes = i64{1} << 20);

// The file of the running program, for starting it again.
std::string program_path();

}  // namespace redco

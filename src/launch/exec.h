// Runs the ranks under mpirun and waits for them.
#pragma once

#include <functional>
#include <string>

#include "launch/mpirun_command.h"
#include "launch/outcome.h"

namespace redco {

struct ExecOptions {
  double fault_timeout = 0;  // s: the watchdog's deadline (launch/watch/judge.h); 0: no deadline
  // The ranks have something to save (train): the first SIGINT, SIGTERM or SIGHUP asks them to save and end,
  // without a time limit. Otherwise, and from the second signal on, all processes end within 5 s. SIGUSR1
  // asks and never ends by force. Requests reach the ranks through the WatchServer, also ranks that start
  // later.
  bool save_on_signal = false;
  // Every SIGINT is passed on as SIGUSR1 and ends nothing.
  bool passes_interrupts = false;
  int stderr_fd = 2;  // where messages go
  // Asked about every second while the ranks run. The first true asks them to save and end, as SIGUSR1 does.
  std::function<bool()> ends_for_restart;
  std::string root;  // of /proc and /sys: "", or a folder with such files in tests
};

// Runs mpirun with its program as a child in its own process group, so that ^C reaches this process
// only. Passes stdout through, standard input if options.input is set, stderr without Open MPI's own text,
// and signals. If nobody reads stderr, the job goes on and its log file has a line about it. One message
// reaches the user when a rank fails: the rank's own, the watchdog's, or a line of the launcher if a rank or
// mpirun was killed. Open MPI's own text goes to a file in the temporary folder if it has anything else to
// say. Returns what the start came to. Its code is the ranks' own, rank_failed (5) when a rank was killed,
// stuck or lost, or mpirun was killed or unable to start, interrupted (8) when signals ended it. UsageError
// when mpirun cannot be started. REQUIRES: one call at a time, from the main thread, in a process without
// MPI.
//
// Ranks report to a WatchServer in this process; its address is in their environment. An end by force (a
// verdict of the server, a second signal, mpirun gone before its ranks) is an order to all ranks, SIGTERM to
// mpirun, and after 2 s SIGKILL to mpirun and every process of the job on this host. Ranks on a host that the
// order does not reach end themselves within fault_timeout.
Outcome exec_under_mpirun(const Mpirun& mpirun, const ExecOptions& options = {});

}  // namespace redco

// Session: from a command to its ranks. The launching process plans the launch; each rank gets its context.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launch/mpirun.h"
#include "shard/parallel_settings.h"
#include "tensor/context.h"

namespace redco {

struct SessionOptions {
  bool save_on_signal = false;  // see ExecOptions, also for the next two
  bool passes_input = false, passes_interrupts = false;
  double timeout = 0;  // seconds after which a collective names the ranks it waits for; 0: never
  std::vector<std::string> program;  // this command again, for mpirun: path and arguments
};

// What this machine, SLURM and the settings make of a launch.
LaunchRequest launch_request(const ParallelSettings& p);

// Runs `body` on every rank: in this process if there is one, under mpirun otherwise, directly if this
// process was already started as a rank. Returns the job's exit code (the same from every rank). Errors are
// printed once, by the rank they happened on, or by the first rank if all of them agreed on it, and end all
// ranks.
int run_session(const ParallelSettings& p, const SessionOptions& o, const std::function<int(Context&)>& body);

// True in a process that is a rank started by run_session, mpirun or srun.
bool is_rank_process();

// Prints an error for people (most important last) and returns its exit code. For main().
int report_error(const std::exception& e);

}  // namespace redco

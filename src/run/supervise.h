// The launcher's part of a run: the preflight of the hosts, the start of the ranks under mpirun, and for a
// training further starts while they can help (launch/supervisor.h).
#pragma once

#include <string>
#include <vector>

#include "job/resolved_job.h"
#include "launch/choose_launcher.h"
#include "launch/preflight.h"

namespace redco {

struct SuperviseOptions {
  std::vector<std::string> program;  // path and arguments of the command, to start the ranks with
  bool save_on_signal = false, passes_input = false, passes_interrupts = false;  // see ExecOptions
  bool restarts = false;  // a training: the settings of `fault:` about restarts hold
};

// Runs the ranks of the job and returns its exit code. REQUIRES: plan_launch(launch) is by mpirun, and
// launch.mpirun is set. Error of the first start if hosts cannot run the ranks: one line for each failure.
int supervise(const ResolvedJob& job, LaunchRequest launch, const SuperviseOptions& options);

// The files of a model's or tokenizer's folder that each rank reads, at most 64: a host may have the folder
// without them, as an empty mount point. The path itself if it is another folder or a file.
std::vector<std::string> files_of_model(const std::string& path);
// What the preflight asks for; `hosts`: with the ranks of each as slots.
PreflightNeeds preflight_needs(const JobConfig& job, const std::vector<Host>& hosts, i64 n_ranks);
// Seconds that a host has for its answer.
double preflight_seconds(const JobConfig& job);

}  // namespace redco

// Run: one command from its job to the exit code. The launcher resolves the job once (the first rank does if
// the ranks were started by hand). All ranks get the same bytes, check that they run the same program and
// kernels, and execute the body.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "job/resolved_job.h"
#include "launch/choose_launcher.h"
#include "launch/join/starter.h"
#include "tensor/context.h"
#include "workdir/workdir_lock.h"

namespace redco {

struct RunRequest {
  // Loads and checks the job. Called once: by the launcher, else by the first rank. What it holds (a lease on
  // a checkpoint) is kept until the run ends; before this process starts itself again it is released.
  std::function<JobConfig()> job;
  // Path and arguments of this command, to start the ranks with.
  std::vector<std::string> program;
  bool save_on_signal = false;  // this and the next two: see ExecOptions
  bool passes_input = false, passes_interrupts = false;
  // One process per host, started by something else than redco: this one's place. Empty: redco starts the
  // ranks of other hosts through ssh or SLURM.
  std::optional<JoinPlace> join;
  std::string key_file;   // see job_key()
  bool restarts = false;  // a training, which may be started again: see run/supervise.h
};

// The interface of a command's body to its run. One per rank.
class Run {
 public:
  Run(ResolvedJob resolved, Context& context) : resolved_(std::move(resolved)), context_(context) {}

  const ResolvedJob& resolved() const { return resolved_; }
  const JobConfig& job() const { return resolved_.job(); }
  Context& context() const { return context_; }
  bool first() const { return context_.world().rank() == 0; }

  // Sets the config keys that depend on the training data, the same on all ranks; see
  // ResolvedJob::with_model_config.
  void decide_model_config(const std::map<std::string, std::string>& keys);
  // Sets the rows of a step on these ranks; see ResolvedJob::with_global_batch_size.
  void decide_global_batch_size(i64 rows);
  // Makes the job's workdir, takes its lock, opens its log, and checks that all ranks see the same folder.
  // The lock is held until the run ends. Collective.
  void open_workdir();
  // Whether open_workdir() was done: the workdir's history is this run's.
  bool has_workdir() const { return has_workdir_; }

 private:
  ResolvedJob resolved_;
  Context& context_;
  std::unique_ptr<WorkdirLock> lock_;  // on the first rank
  bool has_workdir_ = false;
};

// Runs `body` on every rank: in this process if the job has one rank or this process is a rank, under mpirun
// otherwise. Returns the job's exit code, the same on every rank. An error ends all ranks and is printed
// once: by the rank on which it happened, or by the first rank if all ranks agreed on it.
int run(RunRequest request, const std::function<int(Run&)>& body);

// The launch request from this machine, SLURM and the job's settings.
LaunchRequest launch_request(const JobConfig& job);

// True in a process that is a rank started by run(), mpirun or srun.
bool is_rank_process();

// Prints an error and returns its exit code. For main().
int report_error(const std::exception& e);

}  // namespace redco

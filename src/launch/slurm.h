// The SLURM job that this process belongs to, from the environment variables that SLURM documents.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/host.h"

namespace redco {

using Environment = std::map<std::string, std::string>;
Environment current_environment();

// "2(x3),1" -> 2 2 2 1 (SLURM_TASKS_PER_NODE, SLURM_JOB_CPUS_PER_NODE).
std::vector<int> expand_counts(std::string_view text, const char* variable);

struct SlurmJob {
  std::string id;
  std::vector<Host> nodes;  // of the step, if this process is in one, else of the job; slots: tasks
  int cpus_per_task = 0;    // 0: not requested
  std::vector<int> cpus;    // allocated CPUs of each node; empty if SLURM does not list them
  int step_tasks = 0;       // processes of this srun step; 0: not under srun

  // A step of one task in an allocation of one task is an ordinary shell (`srun --pty bash`): a job started
  // there may have more ranks than the allocation has tasks.
  bool is_shell() const { return step_tasks == 1 && total_slots(nodes) == 1; }
};
// nullopt outside of an allocation. UsageError when the variables contradict each other.
std::optional<SlurmJob> detect_slurm(const Environment& environment);

// UsageError: the SLURM job of these variables has ended, as in a shell that outlives its allocation; no
// ranks could start on its nodes. Asks `scontrol`; does nothing where SLURM does not answer, and in a shell
// of a step, which counts as a machine.
void check_allocation(const Environment& environment);

// The workdir of a training run. Each task of a job array needs its own: "%a" becomes the task's number;
// without "%a", "/task-N" is appended. Unchanged outside of a job array.
std::string workdir_of_task(const std::string& workdir, const Environment& environment);
// The workdir of a command that uses a trained model: the same if `holds_run` is true for it, or if "%a"
// names it; else `workdir`, which all tasks then share.
std::string trained_workdir_of_task(const std::string& workdir, const Environment& environment,
                                    const std::function<bool(const std::string& workdir)>& holds_run);
// The job, for the record of a run: "cluster/17", or "17" if the cluster has no name; "" outside of a job. A
// requeued job keeps it.
std::string slurm_job_name(const Environment& environment);
// checkpoint.resume of this start. `never` applies until a SLURM job has begun its run: after that, a
// requeued job resumes (`auto`), because otherwise each restart would lose the saved steps. job_of_run: the
// slurm_job_name() of the run in the workdir, "" if none is known.
std::string resume_of_start(const std::string& resume, const std::string& job_of_run,
                            const Environment& environment);

}  // namespace redco

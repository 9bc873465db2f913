// What the environment says about a SLURM job. No SLURM library: the variables are its documented interface.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/host.h"

namespace redco {

using Environment = std::map<std::string, std::string>;
Environment current_environment();

// "n[1-3,07],m2" -> n1 n2 n3 n07 m2; several brackets in a name multiply. UsageError on what isn't that.
std::vector<std::string> expand_nodelist(std::string_view text);
// "2(x3),1" -> 2 2 2 1 (SLURM_TASKS_PER_NODE, SLURM_JOB_CPUS_PER_NODE).
std::vector<int> expand_counts(std::string_view text, const char* variable);

struct SlurmJob {
  std::string id;
  std::vector<Host> nodes;  // slots: tasks of each node
  int cpus_per_task = 0;    // 0: not asked for
  std::vector<int> cpus;    // allocated CPUs of each node; empty where SLURM doesn't say
  int step_tasks = 0;       // processes that srun has started together with this one; 0: not under srun

  // A step of one task in an allocation of one task is an ordinary shell (`srun --pty bash`): what it starts
  // may have more ranks than the allocation has tasks.
  bool is_shell() const { return step_tasks == 1 && total_slots(nodes) == 1; }
};
// nullopt outside of an allocation. UsageError when the variables contradict each other.
std::optional<SlurmJob> detect_slurm(const Environment& environment);

// The workdir of a training: in a job array each task has its own, since two runs can not share one. "%a" in
// it becomes the task's number; else "/task-N" follows. Unchanged elsewhere.
std::string workdir_of_task(const std::string& workdir, const Environment& environment);
// checkpoint.resume of this start: `never` holds for the first start of a SLURM job. One that was put back
// into the queue resumes (`auto`), or each restart would lose what was saved.
std::string resume_of_start(const std::string& resume, const Environment& environment);

// Whether the output of `srun --mpi=list` names pmix.
bool lists_pmix(std::string_view mpi_list);

}  // namespace redco

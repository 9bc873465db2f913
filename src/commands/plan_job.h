// The command plan: from a job to its plan.
#pragma once

#include <string>
#include <vector>

#include "assembly/assembly.h"
#include "job/job_config.h"
#include "plan/plan.h"

namespace redco {

// A host whose ranks are running.
struct RunningHost {
  std::string name;
  int ranks = 0;
  i64 memory = 0;  // bytes that they may use: free memory, at most the cgroup's limit
};

// Checks the job, builds its model from the config (weights are not read) and plans it for plan.devices, its
// hosts (assumed to equal this machine), or the free memory of this machine. Needs `model` and `parallel`.
// The report lists the assumptions for missing settings.
PlanReport plan_job(const JobConfig& job);
// The same from existing parts, for ranks that are running on the hosts `running`.
PlanReport plan_job(const JobConfig& job, const Assembly& parts,
                    const std::vector<RunningHost>& running = {});

}  // namespace redco

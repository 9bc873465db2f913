// From a job to its plan: what the command `plan` does.
#pragma once

#include <string>
#include <vector>

#include "assembly/assembly.h"
#include "job/job_config.h"
#include "plan/plan.h"

namespace redco {

// A host whose ranks are running already.
struct RunningHost {
  std::string name;
  int ranks = 0;
  i64 memory = 0;  // bytes that they may use: what is free, and no more than the cgroup's limit
};

// Checks the job, builds its model from the config alone (weights are not read) and plans it for
// plan.devices, its hosts (each taken to be like this machine), or the free memory of this machine. Needs
// `model` and `parallel`; says what it assumed for the rest.
PlanReport plan_job(const JobConfig& job);
// The same for ranks that run already on `hosts`, from parts that exist already.
PlanReport plan_job(const JobConfig& job, const Assembly& parts,
                    const std::vector<RunningHost>& running = {});

}  // namespace redco

// From a job to its plan: what the command `plan` does.
#pragma once

#include "assembly/assembly.h"
#include "job/job_config.h"
#include "plan/plan.h"

namespace redco {

// Checks the job, builds its model from the config alone (weights are not read) and plans it for
// plan.devices, its hosts, or this machine. Needs `model` and `parallel`; says what it assumed for the rest.
PlanReport plan_job(const JobConfig& job);
// The same from parts that exist already.
PlanReport plan_job(const JobConfig& job, const Assembly& parts);

}  // namespace redco

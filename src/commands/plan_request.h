// From a job to the request of its plan (plan/plan.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "assembly/assembly.h"
#include "job/job_config.h"
#include "launch/topology.h"
#include "plan/plan.h"

namespace redco {

// A host whose ranks are running.
struct RunningHost {
  std::string name;
  int ranks = 0;
  i64 memory = 0;  // bytes that they may use: free memory, at most the cgroup's limit
};

// The job as it would run here: in an allocation of SLURM its hosts are the nodes, unless it names hosts or
// plan.devices.
JobConfig with_allocation(JobConfig job);

// The hosts of the job, each assumed to equal this machine; without hosts, this machine.
Machines machines_of(const JobConfig& job, const Machine& here);

// The machine's speed: stated in the job, or measured here. Without either, `hint` is how to get it.
struct Speeds {
  std::shared_ptr<const CostModel> model;
  std::string hint;
};
Speeds speeds_for(const JobConfig& job, i64 ranks_per_host);

// Not the run's pipeline: planning calls loss() on one rank only, and a pipeline may keep state.
std::unique_ptr<Pipeline> planned_pipeline(const JobConfig& job, const Assembly& parts);

// Without a model of the machines' speed. With plan.devices it searches what the job leaves open.
PlanRequest plan_request(const JobConfig& job, const Assembly& parts, Pipeline& pipeline,
                         const std::vector<RunningHost>& running = {});

}  // namespace redco

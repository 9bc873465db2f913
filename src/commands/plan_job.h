// The command plan: from a job to its plan.
#pragma once

#include <string>
#include <vector>

#include "assembly/assembly.h"
#include "commands/plan_request.h"
#include "job/job_config.h"
#include "plan/generation_time.h"
#include "plan/plan.h"

namespace redco {

// Checks the job, builds its model from the config (weights are not read) and plans it for plan.devices, its
// hosts (assumed to equal this machine), or the free memory of this machine. Needs `model` and `parallel`.
// The report lists the assumptions for missing settings. with_time: predicts the time of a step, if the speed
// of the machine is stated in the job or was measured here with the job's ranks and threads.
PlanReport plan_job(const JobConfig& job, bool with_time = false);
// The same from existing parts, for ranks that are running on the hosts `running`.
PlanReport plan_job(const JobConfig& job, const Assembly& parts, const std::vector<RunningHost>& running = {},
                    bool with_time = false);

// The predicted speed of the job's generation, on the shapes of `redco bench --predict`.
struct GenerationPlan {
  std::string title, machines, speeds;
  Mesh mesh;
  i64 rows = 0, length = 0, new_tokens = 0;  // rows of all replicas; tokens of a prompt and of an answer
  std::optional<GenerationTime> time;        // none: see `speeds`
  double prefill_tokens_per_s() const;
  double decode_tokens_per_s() const;
};
GenerationPlan plan_generation(const JobConfig& job);
std::string to_text(const GenerationPlan& plan);
std::string to_json(const GenerationPlan& plan);

}  // namespace redco

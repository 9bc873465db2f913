// The search for a setting that fits.
#pragma once

#include <optional>

#include "plan/memory.h"
#include "plan/plan.h"

namespace redco {

// The batch sizes of a step on dp replicas; nullopt if a replica would get no row.
std::optional<PlanSetting> with_batches(const PlanRequest& request, const Mesh& mesh,
                                        std::optional<i64> per_device);

// Chooses the settings that the job leaves open: mp inside a host before mp across hosts, no recompute before
// recompute, the smallest n_model_shards, the largest micro-batch. `next` gets the first larger setting that
// does not fit. If nothing fits, returns the setting that exceeds its limit the least.
PlanCandidate search_setting(const PlanRequest& request, CandidateMemory& memory, StateSharding sharding,
                             bool inside_hosts_only, std::optional<PlanCandidate>* next);

// The smallest n_model_shards that fits on these machines; nullopt if none fits.
std::optional<i64> smallest_shards(const PlanRequest& request, CandidateMemory& memory,
                                   const PlanSetting& like, i64 devices);

// See PlanReport::devices_needed. At most an eighth more than the least number.
std::optional<i64> devices_needed(const PlanRequest& request, const PlanSetting& like);

}  // namespace redco

// The search for the fastest layout of a job that fits: `parallel.layout: auto`.
#pragma once

#include <optional>
#include <vector>

#include "plan/search.h"

namespace redco {

struct TimedSetting {
  PlanSetting setting;
  RankMemory memory;   // of rank 0
  double seconds = 0;  // predicted time of a step, on rank 0
};

struct LayoutSearch {
  std::vector<TimedSetting> fitting;     // the fastest first; equal times: fewer shards first
  std::optional<PlanCandidate> nearest;  // if none fits: the one that exceeds its limit the least
};

// Predicts the time of each setting that the request leaves open (n_model_shards, per_device, recompute),
// with each of `shardings`. Settings that differ in the size of the micro-batch are tried from the largest
// that fits down, in powers of two, while they get faster. Blocks are recomputed only if that allows a larger
// micro-batch. Model shards span hosts only if none inside of the hosts fits. REQUIRES global_batch and
// `model`; several shardings are tried only where there are several replicas.
LayoutSearch search_layouts(const PlanRequest& request, const std::vector<StateSharding>& shardings);

}  // namespace redco

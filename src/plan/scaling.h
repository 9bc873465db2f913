// The predicted scaling of a training over numbers of ranks: `redco plan --scale`.
#pragma once

#include <string>
#include <vector>

#include "plan/layout_search.h"

namespace redco {

struct ScalingPoint {
  PlanSetting setting;
  double seconds = 0;       // predicted time of a step
  double tokens_per_s = 0;  // of all ranks; rows per second if rows have no length
  double efficiency = 1;    // tokens_per_s per rank, relative to the best point's
};

// The points are powers of two and the number of all ranks, those whose setting fits; the fewest ranks first.
struct Scaling {
  std::vector<ScalingPoint> weak;    // the rows of a step grow with the ranks, to the request's global_batch
  std::vector<ScalingPoint> strong;  // each step has global_batch rows
  i64 length = 1;
  std::string machines, speeds;
};

// All ranks get the fastest layout (search_layouts). Fewer ranks keep its model shards, sharding, recompute
// and micro-batch where that fits, and else get their own fastest layout. REQUIRES as search_layouts().
Scaling predict_scaling(const PlanRequest& request, const std::vector<StateSharding>& shardings);

std::string to_text(const Scaling& scaling);
std::string to_json(const Scaling& scaling);

}  // namespace redco

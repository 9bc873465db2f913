// The predicted time of generating text: the passes of a batch on a planned rank.
#pragma once

#include "models/model.h"
#include "pipeline/pipeline.h"
#include "plan/timeline.h"

namespace redco {

struct GenerationRequest {
  const Model* model = nullptr;
  Pipeline* pipeline = nullptr;
  Mesh mesh;
  std::vector<Layout> layouts;  // of pipeline->params()
  ParamStorage storage;
  ComputeDType compute = ComputeDType::fp32;
  CacheDType cache = CacheDType::fp32;
  i64 rows = 1, prompt = 1, new_tokens = 1;  // of a replica
  const CostModel* costs = nullptr;
  const Machines* machines = nullptr;
};

struct GenerationTime {
  PredictedTime prefill;  // of the prompts of a replica
  PredictedTime step;     // of one token of every row, in the middle of the answer
};

// On the slower of the first and the last rank of a replica. Of choosing tokens only the messages are
// included, those of the most likely token. REQUIRES: the model is a decoder that generates text.
GenerationTime generation_time(const GenerationRequest& request);

}  // namespace redco

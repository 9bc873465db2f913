// Predictor: distributes examples to replicas and returns the answers in the order of the examples.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "pipeline/pipeline.h"

namespace redco {

// One JSON object per example, in order, on every rank. `examples` are the same on all ranks. The longest are
// distributed first, one to each replica in turn. Each replica answers its examples on its own mp group:
// batch_size per call, or all together if the pipeline forms batches itself. Answers depend on the ordinals
// of the examples, not on the distribution. on_text: for a single example, on the first rank, if the pipeline
// supports it. Collective.
std::vector<std::string> predict(const Pipeline& pipeline, const ParamTree& params,
                                 std::span<const Example> examples, i64 batch_size,
                                 const std::function<void(std::string_view piece)>& on_text = {});

}  // namespace redco

// Predictor: examples dealt to replicas, answers in the order of the examples.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "train/pipeline.h"

namespace redco {

// One JSON object an example, in order, on every rank. `examples` are the same on all ranks; the longest are
// dealt first, one to each replica in turn, and each replica answers its own on its own mp group: batch_size
// at once, or all together where the pipeline deals them to batches itself. Answers depend on the examples'
// ordinals, not on the dealing. on_text: of a single example, on the first rank, where the pipeline can.
// Collective.
std::vector<std::string> predict(const Pipeline& pipeline, const ParamTree& params,
                                 std::span<const Example> examples, i64 batch_size,
                                 const std::function<void(std::string_view piece)>& on_text = {});

}  // namespace redco

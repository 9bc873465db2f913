// Predictor: examples dealt to replicas in batches, answers in the order of the examples.
#pragma once

#include <string>
#include <vector>

#include "train/pipeline.h"

namespace redco {

// One JSON object an example, in order, on every rank. `examples` are the same on all ranks; batch b of
// `batch_size` rows goes to replica b mod dp, which answers it on its own mp group. Collective.
std::vector<std::string> predict(const Pipeline& pipeline, const ParamTree& params,
                                 std::span<const Example> examples, i64 batch_size);

// Texts of all ranks of the group, in rank order, on every rank. Collective.
std::vector<std::string> gather_texts(Group& g, const std::string& mine);

}  // namespace redco

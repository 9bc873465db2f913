// What a model computes from fixed arbitrary inputs, to compare two forms of its weights.
#pragma once

#include <vector>

#include "models/model.h"

namespace redco {

// The outputs (logits, embeddings, hidden states, ...) of two rows of ids, images or numbers, as the model
// reads them; of a model with two towers those of both. Collective.
std::vector<double> sample_outputs(const Model& model, const ParamTree& params);

}  // namespace redco

// Placements of activations that a model asks for at named points, where the choice of each op alone would
// not find them. Redistributions: the values are unchanged, and the tape does not see them.
#pragma once

#include "tensor/tensor.h"

namespace redco {

// x with `dim` (of all dims, hidden ones included) sharded over the axes of the model. A Partial is
// reduce-scattered.
Tensor shard_over_model(const Tensor& x, int dim);
// x with `dim` whole again on these axes.
Tensor gather_over_model(const Tensor& x, int dim);

}  // namespace redco

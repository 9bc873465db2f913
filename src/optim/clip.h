// The norm of gradients, and clipping by it.
#pragma once

#include <optional>
#include <vector>

#include "tensor/tensor.h"

namespace redco {

// The Euclidean norm of all gradients together; each element counts once. Its bits do not depend on how the
// gradients are sharded (kernels/square_sum.h). NaN if an element is not finite. A few numbers are reduced
// over the model axes, and over the data axes if gradients are sharded there. Undefined tensors are skipped.
double gradient_norm(const std::vector<Tensor>& grads);

// The factor that scales a gradient of this norm down to `most`; 1: it is not larger, or there is no limit.
// As torch.nn.utils.clip_grad_norm_.
double clip_factor(std::optional<double> most, double norm);

}  // namespace redco

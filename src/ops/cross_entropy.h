// Cross-entropy of logits against labels.
#pragma once

#include "tensor/tensor.h"

namespace redco {

constexpr i32 kIgnoredLabel = -100;  // PyTorch's ignore_index

// loss[...] = log sum exp(logits[..., :]) - logits[..., label], in nats; 0 where the label is kIgnoredLabel.
// Any other label outside of [0, V) is an error when the step ends (pipeline/bad_ids.h). If the vocabulary is
// cut, logits are not gathered: each row costs one max-reduction and one sum of two floats. smoothing e: the
// target is (1 - e) one-hot + e / V.
Tensor cross_entropy(const Tensor& logits, const Tensor& labels, double smoothing = 0);
Tensor cross_entropy_composed(const Tensor& logits, const Tensor& labels);

}  // namespace redco

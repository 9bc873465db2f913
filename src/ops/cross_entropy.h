// Cross-entropy of logits against labels.
#pragma once

#include "tensor/tensor.h"

namespace redco {

// loss[...] = log sum exp(logits[..., :]) - logits[..., label], in nats; 0 where label < 0 (ignored).
// Over a vocabulary that is cut, the logits are never gathered: one max-reduction and one packed sum of a
// float pair a row. smoothing e: the target is (1 - e) one-hot + e / V.
Tensor cross_entropy(const Tensor& logits, const Tensor& labels, double smoothing = 0);
Tensor cross_entropy_composed(const Tensor& logits, const Tensor& labels, double smoothing = 0);

}  // namespace redco

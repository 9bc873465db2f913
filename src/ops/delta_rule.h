// The gated delta rule (Yang et al., Gated Delta Networks, 2024), a linear recurrence whose tokens replace
// what the state holds for their keys. Composed of simpler ops.
#pragma once

#include "ops/recurrence.h"

namespace redco {

// A matrix h [N, P] per head:
//   u_t = beta_t (v_t - exp(log_decay_t) h_{t-1}^T k_t)
//   h_t = exp(log_decay_t) h_{t-1} + k_t u_t^T        y_t = h_t^T q_t
// Tokens are computed in chunks by matrix products (the UT transform of Yang et al. 2024, Parallelizing
// Linear Transformers with the Delta Rule), one chunk after the other: time grows with T (chunk + N + P), and
// the chunk changes results only by rounding. Keys should have a length of at most 1, and beta be in [0, 1]:
// else the state may grow.
//
// Inputs, shapes and sharding are those of linear_recurrence; beta [B, T, H].
Recurrence gated_delta_rule(const RecurrenceInputs& in, const Tensor& beta, i64 chunk = 32);

}  // namespace redco

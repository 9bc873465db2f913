// Linear recurrences along the tokens of a sequence, and the convolution that precedes them in Mamba.
// Composed of simpler ops.
#pragma once

#include "tensor/tensor.h"

namespace redco {

// A recurrence with a matrix h [N, P] and a scalar decay per head:
//   h_t = exp(log_decay_t) h_{t-1} + k_t v_t^T        y_t = q_t h_t
// This is the state space duality of Mamba-2 (Dao & Gu 2024), with k = B, q = C and v = dt x; linear
// attention and retention are other settings of it. Tokens are computed in chunks by matrix products: time
// and memory grow with T (chunk + N + P). The chunk changes results only by rounding.
//
// B batch, T tokens, H heads, P head width, N state size, G groups of H / G heads that share keys and
// queries. Heads may be cut in the units of query heads with G key heads (HeadsOf), with keys and queries cut
// in whole groups or replicated: then nothing is communicated.
struct RecurrenceInputs {
  Tensor log_decay;     // [B, T, H]
  Tensor k, q;          // [B, T, G, N]
  Tensor v;             // [B, T, H, P]
  Tensor initial = {};  // [B, H, N, P]: h before the first token; undefined: zeros
  // [B, T] i32: tokens of other segments do not count. Those of one segment are consecutive. Excludes
  // `initial`; undefined: one segment.
  Tensor segments = {};
};
struct Recurrence {
  Tensor y;      // [B, T, H, P], fp32 for activations in bf16
  Tensor state;  // [B, H, N, P]: h after the last token
};
Recurrence linear_recurrence(const RecurrenceInputs& in, i64 chunk = 64);

// The recurrence of Mamba (Gu & Dao 2023), with N numbers h[c, n] per channel c:
//   h_t = exp(-dt_t[c] rates[c, n]) h_{t-1} + dt_t[c] k_t[n] x_t[c]        y_t[c] = sum over n of q_t[n] h_t
// Tokens are computed one after the other, and the backward pass keeps two tensors of B T C N numbers.
// Channels may be cut, with k and q replicated: then nothing is communicated.
struct SelectiveInputs {
  Tensor dt, x;         // [B, T, C]
  Tensor rates;         // [C, N]
  Tensor k, q;          // [B, T, N]
  Tensor initial = {};  // [B, C, N]: h before the first token; undefined: zeros
  // [B, T] i32: tokens of other segments do not count. Excludes `initial`; undefined: one segment.
  Tensor segments = {};
};
// y [B, T, C] and state [B, C, N], fp32 for activations in bf16.
Recurrence selective_scan(const SelectiveInputs& in);

// A causal convolution of each channel along the tokens: y[b, t, c] = bias[c] + sum over k of
// w[c, k] x[b, t + k - K + 1, c], with x [B, T, C], w [C, K], bias [C] or undefined. before [B, K - 1, C]:
// the tokens before the first; undefined: zeros. segments [B, T] i32: tokens of other segments count as
// zeros.
Tensor causal_conv1d(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& before = {},
                     const Tensor& segments = {});

}  // namespace redco

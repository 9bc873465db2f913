// Decays between the tokens of a chunk, for linear recurrences. Composed of simpler ops.
#pragma once

#include "tensor/tensor.h"

namespace redco {

// 0 where the segments are the same, else a number whose exponential is 0; of the sum's shape.
Tensor segment_mask(const Tensor& a, const Tensor& b);
// t [..., n] as [..., n, 1] (column) or [..., 1, n].
Tensor as_matrix(const Tensor& t, bool column);

// Sums of log decays, as the sum of two numbers. Decays are exponentials of their differences, and fp32
// rounds a long sum by more than the difference may be: after a sum of -1e4, a log decay of -0.01 has an
// error of 5 %. So the sums are added in f64, and `rest` is what fp32 leaves over (undefined in f64). It is a
// constant for gradients, which are those of `sum`.
struct LogDecays {
  Tensor sum, rest;
};
LogDecays log_decays(const Tensor& exact, DType dtype);

// exp(sums_i - sums_j) for j <= i: the share of token j that remains at token i; 0 elsewhere, and between
// segments. [..., n] -> [..., n, n]; segments as `sums` or undefined.
Tensor decay_matrix(const LogDecays& sums, const Tensor& segments);

// exp(x), or 0 where the segments differ.
Tensor exp_within(const Tensor& x, const Tensor& a, const Tensor& b);

}  // namespace redco

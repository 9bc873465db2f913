#include "ops/chunk_decay.h"

#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/shape.h"

namespace redco {

namespace {

// 0 where token i of n counts token j, else a number whose exponential is 0: [n, n].
Tensor causal_mask(i64 n, DType dtype) {
  std::vector<float> mask(static_cast<std::size_t>(n * n));
  for (i64 i = 0; i < n; ++i)
    for (i64 j = i + 1; j < n; ++j) mask[static_cast<std::size_t>(i * n + j)] = -1e30f;
  return cast(from_values({n, n}, std::span<const float>(mask)), dtype);
}

}  // namespace

Tensor segment_mask(const Tensor& a, const Tensor& b) {
  return scale(add_scalar(compare(Binary::eq, a, b), -1), 1e30);
}

Tensor as_matrix(const Tensor& t, bool column) {
  Shape s(t.shape().begin() + t.hidden(), t.shape().end());
  s.insert(column ? s.end() : s.end() - 1, 1);
  return reshape(t, s);
}

LogDecays log_decays(const Tensor& exact, DType dtype) {
  const Tensor sum = cast(exact, dtype);
  if (dtype == DType::f64) return {sum, {}};
  return {sum, cast(stop_gradient(exact - cast(sum, DType::f64)), dtype)};
}

Tensor decay_matrix(const LogDecays& sums, const Tensor& segments) {
  const auto minus = [](const Tensor& t) { return scale(as_matrix(t, false), -1); };
  // They are added in this order. The first difference is nearly exact where it is small.
  std::vector<Tensor> terms = {as_matrix(sums.sum, true), minus(sums.sum)};
  if (sums.rest.defined()) {
    terms.push_back(as_matrix(sums.rest, true));
    terms.push_back(minus(sums.rest));
  }
  terms.push_back(causal_mask(sums.sum.size(-1), sums.sum.dtype()));
  if (segments.defined())
    terms.push_back(segment_mask(as_matrix(segments, true), as_matrix(segments, false)));
  return exp(add(terms));
}

Tensor exp_within(const Tensor& x, const Tensor& a, const Tensor& b) {
  return exp(a.defined() ? x + segment_mask(a, b) : x);
}

}  // namespace redco

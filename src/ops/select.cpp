#include "ops/select.h"

#include "base/error.h"
#include "ops/broadcast.h"
#include "ops/create.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/shape.h"

namespace redco {

namespace {

// t with all dims of the result of a broadcast.
Tensor expanded(const Tensor& t, const Broadcast& b, const Layout& wish) {
  Shape own(b.shape.size(), 1);
  for (int d = 0; d < t.rank(); ++d) own[result_dim(t, b, d)] = t.shape()[d];
  return broadcast_to(reshape_all(t, own, b.hidden), b.shape, wish);
}

}  // namespace

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  REDCO_CHECK(a.is_float() == b.is_float(),
              "[where] {} or {}: expected two tensors of numbers, or two of ids", describe(a), describe(b));
  if (!a.is_float())  // f64 holds every id exactly
    return cast(where(condition, to_float(a, DType::f64), to_float(b, DType::f64)), DType::i32);
  const Tensor c = condition.dtype() == DType::i32 ? to_float(condition) : stop_gradient(condition);
  const Broadcast bc = broadcast_shapes("where", {c, a, b});
  // A product with 0 or 1 would spread NaN, so both are put side by side and one is picked.
  const Tensor second = cast(compare(Binary::eq, c, zeros({}, sum_type(c.dtype()))), DType::i32);
  Shape pair = bc.shape;
  pair.push_back(1);
  const auto column = [&](const Tensor& t) {
    return reshape_all(expanded(t, bc, condition.layout()), pair, bc.hidden);
  };
  return pick(concat({column(a), column(b)}, -1), expanded(second, bc, a.layout()));
}

Tensor clamp(const Tensor& x, double low, double high) {
  REDCO_CHECK(low <= high, "[clamp] {} to {}", low, high);
  const auto limit = [&](double v) { return full({}, v, sum_type(x.dtype())); };
  return minimum(maximum(x, limit(low)), limit(high));
}

}  // namespace redco

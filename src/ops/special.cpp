#include "ops/special.h"

#include "ops/create.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "ops/select.h"
#include "ops/shape.h"

namespace redco {

Tensor erf(const Tensor& x) { return unary(Unary::erf, x); }

// The ratio corrects the rounding of 1 + x, and is a constant for the gradient, which is that of log(1 + x).
Tensor log1p(const Tensor& x) {
  const Tensor given = to_sum_type(x), sum = add_scalar(given, 1), y = log(sum);
  const Tensor value = stop_gradient(given), rounded = add_scalar(stop_gradient(sum), -1);
  const Tensor zero = scale(value, 0), is_small = compare(Binary::eq, rounded, zero);
  const Tensor exact = where(is_small, value, stop_gradient(y) * (value / (rounded + is_small)));
  // At -1 both are -inf, whose difference is no number.
  return where(compare(Binary::eq, stop_gradient(sum), zero), y, exact + (y - stop_gradient(y)));
}

// tanh is exact for small x.
Tensor expm1(const Tensor& x) {
  const Tensor given = to_sum_type(x);
  return tanh(scale(given, 0.5)) * add_scalar(exp(given), 1);
}

// A number above 1.5 * 2^(digits - 1) has no digits after the point, so adding it rounds.
Tensor round(const Tensor& x) {
  const Tensor given = stop_gradient(to_sum_type(x));
  const double large = given.dtype() == DType::f64 ? 0x1.8p52 : 0x1.8p23;
  const Tensor size = abs(given), rounded = add_scalar(add_scalar(given, large), -large);
  return where(compare(Binary::lt, size, scale(ones_like(size), large / 3)), rounded, given);
}

Tensor floor(const Tensor& x) {
  const Tensor given = stop_gradient(to_sum_type(x)), nearest = round(given);
  return nearest - compare(Binary::lt, given, nearest);
}

}  // namespace redco

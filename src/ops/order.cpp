#include "ops/order.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "ops/create.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/reduce.h"
#include "ops/select.h"
#include "ops/shape.h"

namespace redco {

namespace {

Shape with_last(Shape shape, i64 size) {
  shape.push_back(size);
  return shape;
}
Shape visible_shape(const Tensor& x) { return {x.shape().begin() + x.hidden(), x.shape().end()}; }

Tensor ordered(Binary op, const Tensor& a, const Tensor& b) {
  REDCO_CHECK(a.is_float() == b.is_float(),
              "[compare] {} and {}: expected two tensors of numbers, or two of ids", describe(a),
              describe(b));
  if (a.is_float()) return compare(op, a, b);
  return compare(op, to_float(a, DType::f64), to_float(b, DType::f64));  // f64 holds every id exactly
}

}  // namespace

Tensor arange(i64 n, i64 start) {
  REDCO_CHECK(
      n >= 0 && start >= std::numeric_limits<i32>::min() && start + n <= std::numeric_limits<i32>::max(),
      "[arange] {} numbers from {}: expected numbers of 32 bits", n, start);
  std::vector<i32> ids(static_cast<std::size_t>(n));
  std::iota(ids.begin(), ids.end(), static_cast<i32>(start));
  return from_ids({n}, ids);
}

Tensor one_hot(const Tensor& ids, i64 width, DType dtype) {
  const Tensor column = reshape(ids, with_last(visible_shape(ids), 1));
  return cast(equal(column, arange(width)), dtype);
}

Tensor pow(const Tensor& x, double exponent) {
  if (exponent != std::floor(exponent) || std::abs(exponent) > 64) return exp(exponent * log(x));
  Tensor out, power = x;
  for (auto n = static_cast<int>(std::abs(exponent)); n > 0; n /= 2) {
    if (n % 2 == 1) out = out.defined() ? out * power : power;
    if (n > 1) power = power * power;
  }
  if (!out.defined()) return ones_like(x);
  return exponent < 0 ? full({}, 1, sum_type(x.dtype())) / out : out;
}

Tensor sign(const Tensor& x) {
  const Tensor zero = zeros({}, sum_type(x.dtype()));
  return compare(Binary::lt, zero, x) - compare(Binary::lt, x, zero);
}

Tensor less(const Tensor& a, const Tensor& b) { return ordered(Binary::lt, a, b); }
Tensor less_equal(const Tensor& a, const Tensor& b) { return ordered(Binary::le, a, b); }
Tensor equal(const Tensor& a, const Tensor& b) { return ordered(Binary::eq, a, b); }

Tensor argmax(const Tensor& x) {
  const Shape shape = visible_shape(x);
  REDCO_CHECK(!shape.empty() && shape.back() > 0, "[argmax] {}: expected a last dim with elements",
              describe(x));
  const i64 n = shape.back();
  const Tensor y = stop_gradient(to_sum_type(x));
  // The first of the largest elements has the largest number n - i.
  const Tensor from_end = static_cast<double>(n) - to_float(arange(n), DType::f64);
  const Tensor largest = cast(compare(Binary::eq, y, max_last(y)), DType::f64) * from_end;
  const Tensor ids = cast(static_cast<double>(n) - max_last(largest), DType::i32);
  return reshape(ids, Shape(shape.begin(), shape.end() - 1));
}

TopK top_k(const Tensor& x, i64 k) {
  const Shape shape = visible_shape(x);
  REDCO_CHECK(!shape.empty() && k >= 1 && k <= shape.back(), "[top_k] k={} of {}: expected 1 to the last dim",
              k, describe(x));
  const Shape column = with_last(Shape(shape.begin(), shape.end() - 1), 1);
  const Tensor low = full({}, -std::numeric_limits<double>::infinity(), sum_type(x.dtype()));
  std::vector<Tensor> values, ids;
  Tensor rest = stop_gradient(to_sum_type(x));
  for (i64 j = 0; j < k; ++j) {
    const Tensor at = argmax(rest);
    values.push_back(reshape(pick(to_sum_type(x), at), column));
    ids.push_back(reshape(to_float(at, DType::f64), column));
    if (j + 1 < k) rest = where(one_hot(at, shape.back(), rest.dtype()), low, rest);
  }
  return {concat(values, -1), cast(concat(ids, -1), DType::i32)};
}

Tensor cummax(const Tensor& x, int dim) {
  Tensor y = to_sum_type(x);
  const int along = y.axis(dim) - y.hidden();
  const i64 n = y.shape()[y.axis(dim)];
  for (i64 s = 1; s < n; s *= 2)  // y[i] holds the maximum of the s elements up to i
    y = concat({narrow(y, along, 0, s), maximum(narrow(y, along, s, n - s), narrow(y, along, 0, n - s))},
               along);
  return y;
}

}  // namespace redco

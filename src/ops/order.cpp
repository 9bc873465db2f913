#include "ops/order.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "ops/create.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/linear.h"
#include "ops/reduce.h"
#include "ops/select.h"
#include "ops/shape.h"

namespace redco {

namespace {

// 0, 1, ..., n - 1 in the type of sums of x.
Tensor steps_like(const Tensor& x, i64 n) { return to_float(arange(n), sum_type(x.dtype())); }

// x with a visible dim of size 1 at `dim`.
Tensor unsqueezed(const Tensor& x, int dim) {
  Shape shape(x.shape().begin() + x.hidden(), x.shape().end());
  const int at = dim < 0 ? dim + static_cast<int>(shape.size()) + 1 : dim;
  Shape out(shape.begin(), shape.begin() + at);
  out.push_back(1);
  for (auto it = shape.begin() + at; it != shape.end(); ++it) out.push_back(*it);
  return reshape(x, out);
}

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

Tensor less(const Tensor& a, const Tensor& b) { return ordered(Binary::lt, a, b); }
Tensor less_equal(const Tensor& a, const Tensor& b) { return ordered(Binary::le, a, b); }
Tensor equal(const Tensor& a, const Tensor& b) { return ordered(Binary::eq, a, b); }

Tensor one_hot(const Tensor& ids, i64 width, DType dtype) {
  REDCO_CHECK(!ids.is_float(), "[one_hot] {}: expected ids", describe(ids));
  return compare(Binary::eq, to_float(unsqueezed(ids, -1), dtype), to_float(arange(width), dtype));
}

Tensor argmax(const Tensor& x) {
  REDCO_CHECK(x.is_float() && x.visible() > 0 && x.size(-1) > 0, "[argmax] of {}", describe(x));
  const i64 n = x.size(-1);
  const Tensor fixed = to_sum_type(stop_gradient(x));
  const Tensor is_max = compare(Binary::eq, fixed, max_last(fixed));
  // n - i at the largest elements, so that the first one wins.
  const Tensor back = max_last(is_max * add_scalar(scale(steps_like(fixed, n), -1), static_cast<double>(n)));
  const Tensor first = add_scalar(scale(back, -1), static_cast<double>(n));
  Shape shape(x.shape().begin() + x.hidden(), x.shape().end() - 1);
  return cast(reshape(first, shape), DType::i32);
}

Tensor take_along(const Tensor& x, const Tensor& ids) {
  REDCO_CHECK(x.visible() == ids.visible() && x.visible() > 0 && !ids.is_float(),
              "[take_along] of {} by {}: expected ids with as many dims", describe(x), describe(ids));
  Shape wide(ids.shape().begin() + ids.hidden(), ids.shape().end());
  wide.push_back(x.size(-1));
  return pick(broadcast_to(unsqueezed(x, -2), wide), ids);
}

Ordered top_k(const Tensor& x, i64 k) {
  REDCO_CHECK(x.visible() > 0 && k >= 1 && k <= x.size(-1), "[top_k] {} of {}", k, describe(x));
  const i64 n = x.size(-1);
  const DType type = sum_type(x.dtype());
  std::vector<Tensor> values, ids;
  Tensor left = to_sum_type(stop_gradient(x));
  for (i64 i = 0; i < k; ++i) {
    const Tensor id = argmax(left);
    ids.push_back(unsqueezed(id, -1));
    values.push_back(unsqueezed(pick(x, id), -1));
    if (i + 1 < k)
      left = where(one_hot(id, n, type), full({}, -std::numeric_limits<double>::infinity(), type), left);
  }
  if (k == 1) return {values[0], ids[0]};
  return {concat(values, -1), concat(ids, -1)};
}

Ordered sort(const Tensor& x, bool descending) {
  REDCO_CHECK(x.is_float() && x.visible() > 0, "[sort] of {}", describe(x));
  const i64 n = x.size(-1);
  const Tensor fixed = to_sum_type(stop_gradient(x));
  // The place of element i: how many elements j come before it.
  const Tensor mine = unsqueezed(fixed, -1), other = unsqueezed(fixed, -2);  // [..., i, 1], [..., 1, j]
  const Tensor steps = steps_like(fixed, n);
  const Tensor earlier =
      compare(Binary::lt, reshape(steps, {1, n}), reshape(steps, {n, 1}));  // [i, j]: j < i
  const Tensor before = descending ? compare(Binary::lt, mine, other) : compare(Binary::lt, other, mine);
  const Tensor place = sum(before + compare(Binary::eq, mine, other) * earlier, {-1});  // [..., i]
  // P[..., r, i] = 1 if element i is at place r.
  const Tensor moves = compare(Binary::eq, unsqueezed(place, -2), reshape(steps, {n, 1}));
  const Tensor values = matmul(moves, unsqueezed(x, -1));
  const Tensor ids = matmul(moves, reshape(steps, {n, 1}));
  Shape shape(x.shape().begin() + x.hidden(), x.shape().end());
  return {reshape(values, shape), cast(reshape(ids, shape), DType::i32)};
}

Tensor cummax(const Tensor& x, int dim) {
  REDCO_CHECK(x.is_float(), "[cummax] of {}", describe(x));
  const int along = x.axis(dim) - x.hidden();
  const i64 n = x.size(along);
  Tensor y = x;
  for (i64 s = 1; s < n; s *= 2) {
    Shape shape(x.shape().begin() + x.hidden(), x.shape().end());
    shape[along] = s;
    const Tensor none = full(shape, -std::numeric_limits<double>::infinity(), y.dtype());
    // The earlier maximum is the first argument, so that it has the gradient of equal ones.
    y = maximum(concat({none, narrow(y, along, 0, n - s)}, along), y);
  }
  return y;
}

Tensor sign(const Tensor& x) { return unary(Unary::sign, stop_gradient(x)); }

Tensor pow(const Tensor& x, double exponent) {
  const auto one = [&] { return full({}, 1, sum_type(x.dtype())); };
  if (exponent == std::floor(exponent) && std::abs(exponent) <= 1024) {
    i64 n = static_cast<i64>(std::abs(exponent));
    if (n == 0) return ones_like(x);
    Tensor base = x, out;
    for (; n > 0; n /= 2) {
      if (n % 2 == 1) out = out.defined() ? out * base : base;
      if (n > 1) base = square(base);
    }
    return exponent < 0 ? one() / out : out;
  }
  if (exponent == 0.5) return sqrt(x);
  if (exponent == -0.5) return rsqrt(x);
  const Tensor is_zero = compare(Binary::eq, x, zeros({}, sum_type(x.dtype())));
  const Tensor powers = exp(exponent * log(where(is_zero, one(), x)));
  const double at_zero = exponent > 0 ? 0 : std::numeric_limits<double>::infinity();
  return where(is_zero, full({}, at_zero, sum_type(x.dtype())), powers);
}

}  // namespace redco

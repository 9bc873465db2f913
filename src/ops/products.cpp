#include "ops/products.h"

#include "base/error.h"
#include "ops/elementwise.h"
#include "ops/shape.h"

namespace redco {

Tensor prod(const Tensor& x, int dim) {
  const int d = x.axis(dim) - x.hidden();
  Tensor y = x;
  REDCO_CHECK(x.size(d) > 0, "[prod] dim {} of {} is empty", d, describe(x));
  while (y.size(d) > 1) {
    const i64 n = y.size(d), half = n / 2;
    const Tensor halves = narrow(y, d, 0, half) * narrow(y, d, half, half);
    y = n % 2 == 0 ? halves : concat({halves, narrow(y, d, n - 1, 1)}, d);
  }
  Shape s(y.shape().begin() + y.hidden(), y.shape().end());
  s.erase(s.begin() + d);
  return reshape(y, s);
}

Tensor cumprod(const Tensor& x, int dim) {
  const int d = x.axis(dim) - x.hidden();
  const i64 n = x.size(d);
  Tensor y = x;
  for (i64 s = 1; s < n; s *= 2)
    y = concat({narrow(y, d, 0, s), narrow(y, d, s, n - s) * narrow(y, d, 0, n - s)}, d);
  return y;
}

}  // namespace redco

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cpu/elementwise.h"
#include "kernels/kernels_testing.h"

namespace redco::kernels {
namespace {

double apply(Binary op, double x, double y) {
  switch (op) {
    case Binary::add:
      return x + y;
    case Binary::sub:
      return x - y;
    case Binary::mul:
      return x * y;
    case Binary::div:
      return x / y;
    case Binary::max:
      return std::max(x, y);
    case Binary::min:
      return std::min(x, y);
    case Binary::eq:
      return x == y;
    case Binary::lt:
      return x < y;
    case Binary::le:
      return x <= y;
  }
  return 0;
}

i64 span_of(const Shape& shape, const Shape& strides) {  // number of elements that a strided array needs
  i64 n = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) n += std::max<i64>(0, shape[d] - 1) * strides[d];
  return n;
}

void check(const Shape& shape, const Shape& as, const Shape& bs) {
  auto a = random_array<float>(span_of(shape, as), 1), b = random_array<float>(span_of(shape, bs), 2);
  // Quarters, so that some are equal; no zeros, because of div and the sign of max(0, -0).
  for (auto* x : {&a, &b})
    for (float& v : *x) v = std::round(v * 4) == 0 ? 0.25f : std::round(v * 4) / 4;
  const i64 n = numel(shape);
  for (int op = 0; op <= static_cast<int>(Binary::le); ++op) {
    std::vector<float> out(static_cast<std::size_t>(n)), want(out);
    for (i64 i = 0; i < n; ++i) {
      i64 rest = i, ia = 0, ib = 0;
      for (std::size_t d = shape.size(); d-- > 0;) {
        ia += rest % shape[d] * as[d];
        ib += rest % shape[d] * bs[d];
        rest /= shape[d];
      }
      want[i] = static_cast<float>(apply(static_cast<Binary>(op), a[ia], b[ib]));
    }
    binary<float>(static_cast<Binary>(op), a.data(), as, b.data(), bs, out.data(), shape);
    EXPECT_TRUE(same_bits(out, want))
        << to_string(shape) << " strides " << to_string(as) << to_string(bs) << " op " << op;
  }
}

TEST(Binary, BroadcastsLikeTheSlowTwin) {
  on_every_isa([] {
    check({}, {}, {});
    check({0}, {1}, {1});
    check({3, 0, 2}, {0, 2, 1}, {0, 2, 1});
    check({1}, {1}, {0});
    check({37}, {1}, {1});
    check({37}, {0}, {1});
    check({5, 37}, {37, 1}, {0, 1});           // bias
    check({5, 37}, {37, 1}, {1, 0});           // per row
    check({5, 37}, {0, 1}, {1, 0});            // outer product
    check({3, 4, 5}, {20, 5, 1}, {5, 0, 1});   // middle
    check({3, 4, 5}, {1, 3, 12}, {20, 5, 1});  // transposed
    check({2, 3, 4, 5, 2}, {120, 40, 10, 2, 1}, {0, 8, 2, 0, 1});
    check({2, 1, 4}, {4, 9, 1}, {4, 4, 1});
    check({3, 20000}, {20000, 1}, {0, 1});  // rows longer than a piece
    check({700, 50}, {50, 1}, {1, 0});
  });
}

TEST(Binary, MaxAndMinKeepNan) {
  on_every_isa([] {
    std::vector<float> a(40, 1.0f), b(40, 2.0f), out(40);
    a[3] = kNan, b[5] = kNan;
    const Shape shape{40}, one{1};
    for (Binary op : {Binary::max, Binary::min}) {
      binary<float>(op, a.data(), one, b.data(), one, out.data(), shape);
      for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(std::isnan(out[i]), i == 3 || i == 5);
    }
  });
}

TEST(Elementwise, FillAffineAndAxpyMatchTheirFormulas) {
  on_every_isa([] {
    for (i64 n : {0, 1, 33, 40000}) {
      const auto x = random_array<float>(n, 1);
      std::vector<float> y(x), z(x), want(x), want2(x), f(x);
      fill(f.data(), 3.5f, n);
      affine(x.data(), y.data(), 2.0f, -0.5f, n);
      axpy(0.25f, x.data(), z.data(), n);
      for (std::size_t i = 0; i < x.size(); ++i) want[i] = 2 * x[i] - 0.5f, want2[i] = 1.25f * x[i];
      expect_close(y, want, 2e-7);
      expect_close(z, want2, 2e-7);
      EXPECT_THAT(f, testing::Each(3.5f));
    }
  });
}

}  // namespace
}  // namespace redco::kernels

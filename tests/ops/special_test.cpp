#include "ops/special.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/elementwise.h"
#include "ops/shape.h"
#include "support/op_cases.h"

namespace redco {
namespace {

using namespace redco::testing;
using OneOf = Tensor (*)(const Tensor&);

TEST(Special, PassCheckOp) {
  for (const auto& [name, f] :
       {std::pair<const char*, OneOf>{"erf", erf}, {"log1p", log1p}, {"expm1", expm1}}) {
    OpCase c{name, {{{3, 4}, -0.9, 1.5}}, [f = f](const std::vector<Tensor>& x) { return f(x[0]); }};
    c.combinations = 16;
    check_op(c);
  }
  for (const auto& [name, f] : {std::pair<const char*, OneOf>{"round", round}, {"floor", floor}})
    check_op({name, {{{3, 4}, -5, 5}}, [f = f](const std::vector<Tensor>& x) { return x[0] * f(x[0]); }});
}

// Where exp and log lose all digits, and at the ends.
TEST(Special, AreExactInFp32) {
  on_one_rank([](Context&) {
    for (const float v : {0.0F, 1e-30F, -1e-10F, 3e-8F, -0.4F, 0.6F, 1.0F, 20.0F}) {
      const Tensor x = from_values({1}, std::vector<float>{v}).watched();
      const auto near = [&](const Tensor& y, double expected) {
        EXPECT_NEAR(to_values(y)[0], expected, 3e-7 * std::fabs(expected)) << v;
      };
      near(log1p(x), std::log1p(v));
      near(expm1(x), std::expm1(v));
      near(erf(x), std::erf(v));
      near(grad(log1p(x), {x})[0], 1 / (1 + static_cast<double>(v)));
    }
    const Tensor low = from_values({1}, std::vector<float>{-1.0F});
    EXPECT_EQ(to_values(log1p(low))[0], -INFINITY);
    EXPECT_EQ(to_values(expm1(scale(low, 200)))[0], -1);
  });
}

TEST(Special, RoundingEqualsTheDefinition) {
  on_one_rank([](Context&) {
    for (const double v : {0.0, 0.5, 1.5, -0.5, -2.5, 2.49, -3.51, 1e6 + 0.5, 8388607.0, 3e9, -3e9})
      for (const DType dtype : {DType::f64, DType::f32}) {
        const Tensor x = cast(from_values({1}, std::vector<double>{v}), dtype);
        const double given = to_values(x)[0];
        EXPECT_EQ(to_values(round(x))[0], std::nearbyint(given)) << v;
        EXPECT_EQ(to_values(floor(x))[0], std::floor(given)) << v;
      }
  });
}

}  // namespace
}  // namespace redco

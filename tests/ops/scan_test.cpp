#include "ops/scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/shape.h"
#include "support/op_cases.h"

namespace redco {
namespace {

using namespace redco::testing;
using Xs = std::vector<Tensor>;

TEST(Cumsum, PassesCheckOp) {
  for (const bool reverse : {false, true})
    for (const int dim : {0, 1, -1}) {
      OpCase c{fmt::format("dim {} {}", dim, reverse), {{{2, 5, 3}}}, [=](const Xs& x) {
                 return square(cumsum(x[0], dim, reverse));
               }};
      c.inputs[0].units = {1, 2};
      c.combinations = 40;
      check_op(c);
    }
  Input x{{2, 3, 2}};
  x.hidden = 1;
  check_op({"hidden", {x}, [](const Xs& in) { return cumsum(in[0], 0); }});
  check_op({"none", {{{0, 3}}}, [](const Xs& in) { return cumsum(in[0], 0) + cumsum(in[0], 1); }});
}

// Lengths on both sides of powers of two.
TEST(Cumsum, EqualsTheDefinition) {
  on_one_rank([](Context&) {
    for (const i64 n : {1, 2, 3, 7, 8, 9, 64, 100}) {
      const std::vector<double> x = Random(4).values(2 * n * 3);
      for (const bool reverse : {false, true}) {
        std::vector<double> expected(x.size());
        for (i64 b = 0; b < 2; ++b)
          for (i64 c = 0; c < 3; ++c) {
            double sum = 0;
            for (i64 k = 0; k < n; ++k) {
              const i64 at = (b * n + (reverse ? n - 1 - k : k)) * 3 + c;
              expected[at] = sum += x[at];
            }
          }
        EXPECT_LT(distance(to_values(cumsum(place({2, n, 3}, x, {}), 1, reverse)), expected), 1e-13) << n;
      }
    }
  });
}

// Later elements have no effect on earlier ones, even if they are infinite.
TEST(Cumsum, InfinityDoesNotReachEarlierElements) {
  on_one_rank([](Context&) {
    const Tensor x = from_values({4}, std::vector<double>{1, 2, -INFINITY, 3});
    EXPECT_THAT(to_values(cumsum(x, 0)), ::testing::ElementsAre(1, 3, -INFINITY, -INFINITY));
    EXPECT_THAT(to_values(cumsum(x, 0, true)), ::testing::ElementsAre(-INFINITY, -INFINITY, -INFINITY, 3));
  });
}

TEST(Products, PassCheckOp) {
  for (const int dim : {0, -1}) {
    OpCase c{fmt::format("prod {}", dim), {{{2, 5, 3}}}, [=](const Xs& x) { return prod(x[0], dim); }};
    c.combinations = 16;
    check_op(c);
    c.name = fmt::format("cumprod {}", dim);
    c.f = [=](const Xs& x) { return cumprod(x[0], dim); };
    check_op(c);
  }
}

// Gradients too are products of the other elements, where one or two of them are 0.
TEST(Products, EqualTheDefinition) {
  on_one_rank([](Context&) {
    for (const std::vector<double>& v :
         {std::vector<double>{3}, {2, -3}, {2, 0, 5}, {1, 2, 3, 4, 5, 6, 7}, {0, 2, 0, 3}}) {
      const i64 n = static_cast<i64>(v.size());
      const Tensor x = from_values({n}, v).watched();
      std::vector<double> so_far(v), others(v.size(), 1.0);
      for (std::size_t i = 0; i < v.size(); ++i) {
        if (i > 0) so_far[i] *= so_far[i - 1];
        for (std::size_t j = 0; j < v.size(); ++j)
          if (j != i) others[i] *= v[j];
      }
      EXPECT_EQ(to_values(cumprod(x, 0)), so_far);
      EXPECT_EQ(to_values(prod(x, 0))[0], so_far.back());
      EXPECT_EQ(to_values(grad(prod(x, 0), {x})[0]), others);
    }
    EXPECT_THROW(prod(zeros({2, 0}), 1), BugError);
  });
}

}  // namespace
}  // namespace redco

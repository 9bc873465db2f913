#include "ops/scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(LinearScan, PassesCheckOp) {
  for (const bool reverse : {false, true})
    for (const int dim : {0, 1, -1}) {
      OpCase c{fmt::format("dim {} {}", dim, reverse), {{{2, 5, 3}}, {{2, 5, 3}}}, [=](const Xs& x) {
                 return linear_scan(x[0], x[1], dim, reverse);
               }};
      c.combinations = 16;
      check_op(c);
    }
  Input x{{2, 3, 2}};
  x.hidden = 1;
  check_op({"hidden", {x, x}, [](const Xs& in) { return linear_scan(in[0], in[1], 0); }});
  check_op({"none", {{{0, 3}}, {{0, 3}}}, [](const Xs& in) {
              return linear_scan(in[0], in[1], 0) + linear_scan(in[0], in[1], 1, true);
            }});
}

TEST(LinearScan, EqualsTheDefinition) {
  on_one_rank([](Context&) {
    for (const i64 n : {1, 2, 9}) {
      const std::vector<double> a = Random(4).values(2 * n * 3), b = Random(5).values(2 * n * 3);
      for (const bool reverse : {false, true}) {
        std::vector<double> expected(a.size());
        for (i64 r = 0; r < 2; ++r)
          for (i64 c = 0; c < 3; ++c) {
            double h = 0;
            for (i64 k = 0; k < n; ++k) {
              const i64 at = (r * n + (reverse ? n - 1 - k : k)) * 3 + c;
              expected[at] = h = a[at] * h + b[at];
            }
          }
        const Tensor h = linear_scan(place({2, n, 3}, a, {}), place({2, n, 3}, b, {}), 1, reverse);
        EXPECT_LT(distance(to_values(h), expected), 1e-14) << n;
      }
    }
    EXPECT_THROW(linear_scan(place({1}, {1}, {}), place({2}, {1, 2}, {}), 0), BugError);
  });
}

}  // namespace
}  // namespace redco

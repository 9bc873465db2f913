#include "ops/products.h"

#include <gtest/gtest.h>

#include "ops/create.h"
#include "support/op_cases.h"

namespace redco {
namespace {

using namespace redco::testing;
using Xs = std::vector<Tensor>;

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

#include "ops/select.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/op_cases.h"

namespace redco {
namespace {

using namespace redco::testing;
using Xs = std::vector<Tensor>;

TEST(Where, PassesCheckOp) {
  OpCase c{"ids",
           {ids_input({3, 4}, {1, 0, 0, 2, 0, 1, -1, 0, 1, 1, 0, 0}), {{3, 4}}, {{4}}},
           [](const Xs& x) { return where(x[0], x[1], x[2]); }};
  c.inputs[1].units = {1, 2};
  c.combinations = 120;
  check_op(c);
  OpCase column = c;
  column.inputs = {ids_input({3, 1}, {1, 0, 1}), {{3, 4}}, {{}}};
  check_op(column);
  // A hidden dim of one operand only.
  Input x{{2, 3, 4}};
  x.hidden = 1;
  check_op({"hidden", {x, {{4}}}, [](const Xs& in) {
              return where(compare(Binary::lt, in[1], zeros({}, DType::f64)), in[0], in[1]);
            }});
}

TEST(Where, WhatIsNotSelectedHasNoEffect) {
  on_one_rank([](Context&) {
    const Tensor a = from_values({3}, std::vector<double>{1, NAN, INFINITY}).watched();
    const Tensor b = from_values({3}, std::vector<double>{NAN, 2, 3}).watched();
    const Tensor y = where(from_ids({3}, {{7, 0, 0}}), a, b);
    EXPECT_THAT(to_values(y), ::testing::ElementsAre(1, 2, 3));
    const auto g = grad(sum_all(square(y)), {a, b});
    EXPECT_THAT(to_values(g[0]), ::testing::ElementsAre(2, 0, 0));
    EXPECT_THAT(to_values(g[1]), ::testing::ElementsAre(0, 4, 6));
  });
}

TEST(Where, SelectsIds) {
  on_one_rank([](Context&) {
    const Tensor padded = from_ids({3}, {{5, 0, -1}});
    EXPECT_THAT(to_ids(label_mask(padded, DType::i32)), ::testing::ElementsAre(1, 1, 0));
    EXPECT_THAT(to_values(label_mask(padded, DType::f32)), ::testing::ElementsAre(1, 1, 0));
    // Neighbours that f32 does not tell apart.
    const Tensor a = from_ids({2, 2}, {{2147483647, -2147483647, 16777217, 0}});
    const Tensor y = where(from_values({2, 1}, std::vector<float>{1, 0}), a, from_ids({1}, {{-100}}));
    EXPECT_EQ(y.dtype(), DType::i32);
    EXPECT_THAT(to_ids(y), ::testing::ElementsAre(2147483647, -2147483647, -100, -100));
    try {
      where(from_ids({1}, {{1}}), a, from_values({1}, std::vector<float>{0}));
      ADD_FAILURE() << "expected an error";
    } catch (const BugError& e) {
      EXPECT_THAT(e.what(), ::testing::HasSubstr("expected two tensors of numbers, or two of ids"));
    }
  });
}

TEST(Clamp, PassesCheckOpAwayFromItsLimits) {
  const auto f = [](const Xs& x) { return clamp(x[0], -0.5, 0.25) * x[0]; };
  OpCase c{"clamp", {{{3, 4}}}, f};
  c.inputs[0].units = {1, 2};
  check_op(c);
  check_op({"below", {{{4}}}, [](const Xs& x) { return clamp(x[0], -INFINITY, 0.1); }});
}

TEST(Clamp, GradientIsOneAtItsLimits) {
  on_one_rank([](Context&) {
    const Tensor x = from_values({5}, std::vector<double>{-2, -1, 0, 1, 2}).watched();
    const Tensor y = clamp(x, -1, 1);
    EXPECT_THAT(to_values(y), ::testing::ElementsAre(-1, -1, 0, 1, 1));
    EXPECT_THAT(to_values(grad(sum_all(y), {x})[0]), ::testing::ElementsAre(0, 1, 1, 1, 0));
    EXPECT_THROW(clamp(x, 1, -1), BugError);
  });
}

}  // namespace
}  // namespace redco

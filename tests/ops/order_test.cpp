#include "ops/order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/create.h"
#include "support/op_cases.h"

namespace redco {
namespace {

using namespace redco::testing;
using ::testing::ElementsAre;
using Xs = std::vector<Tensor>;

TEST(Order, PassesCheckOp) {
  for (const double p : {3.0, -2.0, 1.5}) {
    OpCase c{fmt::format("pow {}", p), {{{3, 4}, 0.5, 2}}, [p](const Xs& x) { return pow(x[0], p); }};
    c.inputs[0].units = {1, 2};
    c.combinations = 60;
    check_op(c);
  }
  for (const int dim : {0, 1}) {
    OpCase c{
        fmt::format("cummax {}", dim), {{{3, 5}}}, [dim](const Xs& x) { return square(cummax(x[0], dim)); }};
    c.combinations = 60;
    check_op(c);
  }
  OpCase top{"top_k", {{{3, 5}}}, [](const Xs& x) { return square(top_k(x[0], 3).values); }};
  top.combinations = 60;
  check_op(top);
  check_op({"sign", {{{3, 4}}}, [](const Xs& x) { return sign(x[0]) * square(x[0]); }});
}

TEST(Order, EqualsTheDefinitions) {
  on_one_rank([](Context&) {
    EXPECT_THAT(to_ids(arange(4, -1)), ElementsAre(-1, 0, 1, 2));
    EXPECT_THAT(to_values(one_hot(from_ids({3}, {{1, 5, -1}}), 2)), ElementsAre(0, 1, 0, 0, 0, 0));
    const Tensor x = from_values({2, 4}, std::vector<double>{1, 3, 3, -2, -1, -5, -1, -7});
    EXPECT_THAT(to_ids(argmax(x)), ElementsAre(1, 0));
    const TopK top = top_k(x, 3);
    EXPECT_THAT(to_ids(top.ids), ElementsAre(1, 2, 0, 0, 2, 1));
    EXPECT_THAT(to_values(top.values), ElementsAre(3, 3, 1, -1, -1, -5));
    EXPECT_THAT(to_values(cummax(x, 1)), ElementsAre(1, 3, 3, 3, -1, -1, -1, -1));
    EXPECT_THAT(to_values(sign(from_values({3}, std::vector<double>{-2, 0, 5}))), ElementsAre(-1, 0, 1));
    EXPECT_THAT(to_values(pow(from_values({3}, std::vector<double>{-2, 0, 5}), 3)), ElementsAre(-8, 0, 125));
    EXPECT_THAT(to_values(pow(from_values({2}, std::vector<double>{-2, 5}), 0)), ElementsAre(1, 1));
    EXPECT_THAT(to_values(less(from_ids({2}, {{16777217, 1}}), from_ids({1}, {{16777217}}))),
                ElementsAre(0, 1));
    EXPECT_THROW(top_k(x, 5), BugError);
    EXPECT_THROW(equal(x, from_ids({4}, {{1, 2, 3, 4}})), BugError);
  });
}

}  // namespace
}  // namespace redco

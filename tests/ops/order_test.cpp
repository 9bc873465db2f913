#include "ops/order.h"

#include <gmock/gmock.h>

#include <cmath>

#include "ops/create.h"
#include "ops/shape.h"
#include "support/op_cases.h"

namespace redco::testing {
namespace {

using Xs = std::vector<Tensor>;
using ::testing::ElementsAre;

// The values are different, so that no order changes within a difference.
Input distinct(const Shape& shape) { return {shape, 0.2, 1.7}; }

TEST(Order, DerivativesAndPlacements) {
  check_op({"top_k", {distinct({4, 6})}, [](const Xs& x) { return square(top_k(x[0], 2).values); }});
  check_op({"sort", {distinct({3, 5})}, [](const Xs& x) { return square(sort(x[0]).values); }});
  check_op({"sort down", {distinct({2, 2, 4})}, [](const Xs& x) { return square(sort(x[0], true).values); }});
  check_op({"cummax", {distinct({3, 7})}, [](const Xs& x) { return square(cummax(x[0], 1)); }});
  check_op({"cummax rows", {distinct({5, 2})}, [](const Xs& x) { return square(cummax(x[0], 0)); }});
  check_op({"take_along", {distinct({2, 5}), ids_input({2, 3}, {4, 0, 4, 1, 2, 3})}, [](const Xs& x) {
              return square(take_along(x[0], x[1]));
            }});
  for (const double p : {3.0, 2.0, -2.0, 1.5, -0.7, 0.5, 7.0})
    check_op({"pow", {distinct({3, 4})}, [p](const Xs& x) { return pow(x[0], p); }});
  OpCase powers{"pow of negative numbers", {{{3, 4}}}, [](const Xs& x) { return pow(x[0], 5); }};
  check_op(powers);
}

TEST(Order, WithoutGradient) {
  OpCase c{"argmax", {distinct({4, 6})}, [](const Xs& x) { return to_float(argmax(x[0]), DType::f64); }};
  c.differentiable = false;
  check_op(c);
  OpCase one{"one_hot", {ids_input({2, 3}, {4, 0, 2, 1, 2, 3})}, [](const Xs& x) {
               return one_hot(x[0], 5, DType::f64);
             }};
  one.differentiable = false;
  check_op(one);
  OpCase s{"sign", {{{3, 4}}}, [](const Xs& x) { return sign(x[0]); }};
  s.differentiable = false;
  check_op(s);
}

TEST(Order, EqualElementsAndEdges) {
  on_one_rank([](Context&) {
    const std::vector<double> v = {3, 1, 3, 2, -1, -1, -1, -1};
    const Tensor x = from_values({2, 4}, std::span<const double>(v));
    EXPECT_THAT(to_ids(argmax(x)), ElementsAre(0, 0));
    EXPECT_THAT(to_ids(sort(x).ids), ElementsAre(1, 3, 0, 2, 0, 1, 2, 3));
    EXPECT_THAT(to_ids(sort(x, true).ids), ElementsAre(0, 2, 3, 1, 0, 1, 2, 3));
    EXPECT_THAT(to_values(top_k(x, 3).values), ElementsAre(3, 3, 2, -1, -1, -1));
    EXPECT_THAT(to_ids(top_k(x, 3).ids), ElementsAre(0, 2, 3, 0, 1, 2));
    EXPECT_THAT(to_ids(arange(3)), ElementsAre(0, 1, 2));
    EXPECT_THAT(to_ids(arange(2, 5)), ElementsAre(5, 6));
    EXPECT_THAT(to_values(less(arange(3), arange(3, -1))), ElementsAre(0, 0, 0));
    EXPECT_THAT(to_values(less_equal(arange(2), from_ids({1}, std::vector<i32>{0}))), ElementsAre(1, 0));
    EXPECT_THAT(to_values(equal(arange(2), from_ids({1}, std::vector<i32>{1}))), ElementsAre(0, 1));
    EXPECT_THROW(less(arange(2), x), BugError);
    const std::vector<double> at = {0, 4};
    const Tensor z = from_values({2}, std::span<const double>(at));
    EXPECT_THAT(to_values(pow(z, 1.5)), ElementsAre(0, ::testing::DoubleNear(8, 1e-12)));
    EXPECT_THAT(to_values(pow(z, 0)), ElementsAre(1, 1));
    EXPECT_TRUE(std::isinf(to_values(pow(z, -1.5))[0]));
    EXPECT_THROW(top_k(x, 5), BugError);
  });
}

}  // namespace
}  // namespace redco::testing

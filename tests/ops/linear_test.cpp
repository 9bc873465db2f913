#include "ops/linear.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/shape.h"
#include "support/op_cases.h"

namespace redco {
namespace {

using namespace redco::testing;
using Xs = std::vector<Tensor>;

OpFunction plain_linear() {
  return [](const Xs& x) { return linear(x[0], x[1]); };
}

TEST(Linear, TwoDimsPassCheckOp) {
  OpCase c{"linear", {{{3, 4}}, {{6, 4}}}, plain_linear()};
  c.inputs[0].units = c.inputs[1].units = {1, 2, 3};
  c.combinations = 400;
  check_op(c);
}

TEST(Linear, BatchDimsAndBiasPassCheckOp) {
  OpCase c{
      "linear bias", {{{2, 3, 4}}, {{5, 4}}, {{5}}}, [](const Xs& x) { return linear(x[0], x[1], x[2]); }};
  check_op(c);
  check_op(
      {"linear of a vector", {{{4}}, {{5, 4}}, {{5}}}, [](const Xs& x) { return linear(x[0], x[1], x[2]); }});
}

TEST(Linear, EmptyDimsPassCheckOp) {
  check_op({"no rows", {{{0, 4}}, {{2, 4}}}, plain_linear()});
  check_op({"no inputs", {{{3, 0}}, {{2, 0}}}, plain_linear()});
  check_op({"one of each", {{{1, 1}}, {{1, 1}}}, plain_linear()});
}

TEST(Linear, ExpertsAndFastWeightsPassCheckOp) {
  OpCase experts{"experts", {{{2, 3, 4}}, {{2, 5, 4}}}, plain_linear()};
  check_op(experts);
  // vmap: one weight per task, with rows of the task and rows that all tasks share.
  Input x{{2, 3, 4}}, w{{2, 5, 4}}, b{{2, 5}};
  x.hidden = w.hidden = b.hidden = 1;
  check_op({"tasks", {x, w, b}, [](const Xs& in) { return linear(in[0], in[1], in[2]); }});
  check_op({"shared rows", {{{3, 4}}, w, b}, [](const Xs& in) { return linear(in[0], in[1], in[2]); }});
  check_op({"shared weight", {x, {{5, 4}}, {{5}}}, [](const Xs& in) { return linear(in[0], in[1], in[2]); }});
  Input x4{{2, 2, 3, 4}};
  x4.hidden = 1;
  check_op({"rows of two dims", {x4, w, b}, [](const Xs& in) { return linear(in[0], in[1], in[2]); }});
  Input vector{{2, 4}};
  vector.hidden = 1;
  check_op({"a vector a task", {vector, w, b}, [](const Xs& in) { return linear(in[0], in[1], in[2]); }});
}

TEST(Linear, ItsBackwardOpsPassCheckOp) {
  check_op({"transposed", {{{3, 5}}, {{5, 4}}}, [](const Xs& x) { return linear_transposed(x[0], x[1]); }});
  check_op({"weight gradient", {{{2, 3, 5}}, {{2, 3, 4}}}, [](const Xs& x) {
              return linear_weight_gradient(x[0], x[1]);
            }});
}

// x, a weight with its bias and an update.
TEST(Linear, LowRankUpdatesPassCheckOp) {
  const auto layer = [](const Xs& x) {
    return add_low_rank(linear(x[0], x[1], x[2]), x[0], {x[3], x[4], 0.7});
  };
  OpCase c{"update", {{{2, 3, 4}}, {{6, 4}}, {{6}}, {{2, 4}}, {{6, 2}}}, layer};
  c.combinations = 300;
  check_op(c);
  // vmap: an update for each task.
  Input x{{2, 3, 4}}, a{{2, 2, 4}}, b{{2, 5, 2}};
  x.hidden = a.hidden = b.hidden = 1;
  check_op({"an update a task", {x, {{5, 4}}, {{5}}, a, b}, layer});
}

TEST(Matmul, EveryTransposePassesCheckOp) {
  for (bool ta : {false, true})
    for (bool tb : {false, true}) {
      const Shape a = ta ? Shape{4, 3} : Shape{3, 4}, b = tb ? Shape{5, 4} : Shape{4, 5};
      OpCase c{fmt::format("matmul {} {}", ta, tb), {{a}, {b}}, [ta, tb](const Xs& x) {
                 return matmul(x[0], x[1], ta, tb);
               }};
      c.inputs[0].units = c.inputs[1].units = {1, 3};
      check_op(c);
    }
}

TEST(Matmul, BatchDimsPassCheckOp) {
  auto f = [](bool ta, bool tb) { return [ta, tb](const Xs& x) { return matmul(x[0], x[1], ta, tb); }; };
  check_op({"same batch", {{{3, 2, 4}}, {{3, 4, 2}}}, f(false, false)});
  check_op({"same batch, both transposed", {{{3, 4, 2}}, {{3, 2, 4}}}, f(true, true)});
  check_op({"b has no batch", {{{3, 2, 4}}, {{4, 2}}}, f(false, false)});
  check_op({"a has no batch", {{{2, 4}}, {{3, 4, 2}}}, f(false, false)});
  check_op({"batch dims of size 1", {{{2, 1, 2, 4}}, {{1, 3, 4, 2}}}, f(false, false)});
  check_op({"grouped", {{{2, 2, 3, 2, 4}}, {{2, 2, 1, 5, 4}}}, f(false, true)});
  Input a{{2, 3, 4}}, b{{2, 3, 4, 2}};
  a.hidden = b.hidden = 1;
  check_op({"hidden", {a, b}, f(false, false)});
}

TEST(Matmul, EmptyDimsPassCheckOp) {
  auto f = [](const Xs& x) { return matmul(x[0], x[1]); };
  check_op({"empty batch", {{{0, 2, 3}}, {{1, 3, 2}}}, f});
  check_op({"empty batch of b", {{{1, 2, 3}}, {{0, 3, 2}}}, f});
  check_op({"nothing to contract", {{{2, 2, 0}}, {{2, 0, 3}}}, f});
}

// Products give bf16, their sums are fp32, and gradients of weights are fp32. Values that bf16 holds are
// exact.
TEST(Linear, ComputesInBf16) {
  on_one_rank([](Context& c) {
    c.compute_dtype = ComputeDType::bf16;
    const i64 rows = 20, in = 64;
    const Tensor w = full({3, in}, 1.0078125).watched(), b = full({3}, 0.5).watched();  // 1 + 2^-7 is a bf16
    const Tensor x = full({rows, in}, 1).watched();
    const Tensor y = linear(x, w, b);
    EXPECT_EQ(y.dtype(), DType::bf16);
    EXPECT_EQ(to_values(y)[0], 65);  // 64 * (1 + 2^-7) + 0.5, in bf16
    const std::vector<Tensor> d = grad(sum_all(y), {x, w, b});
    EXPECT_EQ(d[1].dtype(), DType::f32);
    EXPECT_EQ(to_values(d[1])[5], rows);
    EXPECT_EQ(to_values(d[2])[1], rows);
    EXPECT_EQ(to_values(d[0])[0], 3.03125);  // 3 (1 + 2^-7) = 3.0234375, to the even neighbour
    EXPECT_EQ(linear(full({2, 2}, 1, DType::f64), full({2, 2}, 1, DType::f64)).dtype(), DType::f64);
  });
}

// Layers with one input in one call: the results of separate calls, and derivatives of both orders.
TEST(Linear, SeveralLayersInOneCall) {
  const auto several = [](const Xs& x) {
    const Tensors y = linear(x[0], {x[1], x[2], x[3]}, {x[4], {}, x[5]});
    return concat({y[0], y[1], y[2]}, -1);
  };
  check_op({"three layers", {{{2, 3, 4}}, {{5, 4}}, {{3, 4}}, {{2, 4}}, {{5}}, {{2}}}, several});
  on_one_rank([](Context&) {
    const Tensor x = full({4, 3}, 2), w = full({5, 3}, 0.25), v = full({2, 3}, -1), b = full({2}, 3);
    const Tensors y = linear(x, {w, v}, {{}, b});
    EXPECT_EQ(to_values(y[0]), to_values(linear(x, w)));
    EXPECT_EQ(to_values(y[1]), to_values(linear(x, v, b)));
  });
}

TEST(Linear, MisuseIsAnError) {
  on_one_rank([](Context&) {
    EXPECT_THROW(linear(zeros({2, 3}), zeros({2, 4})), BugError);
    EXPECT_THROW(linear(zeros({2, 3}), zeros({2, 3}, DType::f64)), BugError);
    EXPECT_THROW(matmul(zeros({2, 3}), zeros({2, 3})), BugError);
    EXPECT_THROW(matmul(zeros({2, 2, 3}), zeros({3, 3, 2})), BugError);
  });
}

}  // namespace
}  // namespace redco

#include "ops/elementwise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/shape.h"
#include "support/op_cases.h"

namespace redco {
namespace {

using namespace redco::testing;
using Xs = std::vector<Tensor>;

TEST(Elementwise, EveryUnaryPassesCheckOp) {
  for (int k = 0; k <= static_cast<int>(Unary::softplus); ++k) {
    const Unary op = static_cast<Unary>(k);
    // Away from the kinks at 0; positive if the function requires it.
    const bool positive = op == Unary::log || op == Unary::sqrt || op == Unary::rsqrt ||
                          op == Unary::reciprocal || op == Unary::abs || op == Unary::relu;
    Input x{{3, 4}, positive ? 0.4 : -2, 2};
    if (op == Unary::step || op == Unary::sign) {
      OpCase c{name_of(op), {x}, [op](const Xs& in) { return unary(op, in[0]); }};
      c.differentiable = false;
      check_op(c);
      continue;
    }
    x.units = {1, 2};
    check_op({name_of(op), {x}, [op](const Xs& in) { return unary(op, in[0]); }});
  }
}

TEST(Elementwise, GatedActivationsPassCheckOp) {
  // silu and gelu in one pass; tanh of two ops; shapes that broadcast, too.
  const Input in{.shape = {3, 4}, .low = -2, .high = 2, .units = {1, 2}};
  for (const Unary op : {Unary::silu, Unary::gelu, Unary::gelu_tanh, Unary::gelu_quick, Unary::tanh})
    check_op({name_of(op), {in, in}, [op](const Xs& x) { return gated(op, x[0], x[1]); }, true, 60});
  check_op({"broadcast", {{{3, 4}}, {{4}}}, [](const Xs& x) { return gated(Unary::silu, x[0], x[1]); }});
}

// The same bits as two ops, in both directions.
TEST(Elementwise, GatedActivationsAreTheirTwoOps) {
  on_one_rank([](Context&) {
    Random random(3);
    for (const Unary op : {Unary::silu, Unary::gelu, Unary::gelu_tanh, Unary::gelu_quick}) {
      Xs x;
      for (int i = 0; i < 3; ++i) x.push_back(cast(place({5, 403}, random.values(5 * 403), {}), DType::f32));
      const Tensor gate = x[0].watched(), up = x[1].watched();
      const Tensor one = gated(op, gate, up), two = unary(op, gate) * up;
      EXPECT_EQ(to_values(one), to_values(two)) << name_of(op);
      const auto a = vjp({one}, {x[2]}, {gate, up}), b = vjp({two}, {x[2]}, {gate, up});
      for (const std::size_t i : {0, 1}) EXPECT_EQ(to_values(a[i]), to_values(b[i])) << name_of(op) << i;
    }
  });
}

TEST(Elementwise, FunctionsWithKinksPassCheckOpOnBothSides) {
  check_op({"relu", {{{5}, -2, -0.3}}, [](const Xs& x) { return relu(x[0]) + x[0]; }});
  check_op({"abs", {{{5}, -2, -0.3}}, [](const Xs& x) { return abs(x[0]); }});
}

TEST(Elementwise, FunctionsAreThoseOfTheirNames) {
  on_one_rank([](Context&) {
    const Tensor x = from_values({2}, std::vector<double>{-1.25, 0.5});
    const struct {
      Tensor (*f)(const Tensor&);
      double (*expected)(double);
    } kFunctions[] = {{abs, [](double v) { return std::fabs(v); }},
                      {sin, [](double v) { return std::sin(v); }},
                      {cos, [](double v) { return std::cos(v); }},
                      {softplus, [](double v) { return std::log1p(std::exp(v)); }}};
    for (const auto& f : kFunctions)
      EXPECT_LT(distance(to_values(f.f(x)), {f.expected(-1.25), f.expected(0.5)}), 1e-15);
  });
}

// The smooth functions are correct at zero, also in the second derivative (zeros are common: masks, initial
// values).
TEST(Elementwise, DerivativesAtZeroAreExact) {
  on_one_rank([](Context&) {
    const struct {
      Unary op;
      double first, second;
    } kCases[] = {{Unary::softplus, 0.5, 0.25},
                  {Unary::gelu, 0.5, 2 / std::sqrt(2 * M_PI)},
                  {Unary::gelu_tanh, 0.5, std::sqrt(2 / M_PI)},
                  {Unary::gelu_quick, 0.5, 1.702 / 2},
                  {Unary::silu, 0.5, 0.5}};
    for (const auto& c : kCases) {
      const Tensor x = zeros({1}, DType::f64).watched();
      EXPECT_NEAR(item(grad(sum_all(unary(c.op, x)), {x})[0]), c.first, 1e-14) << name_of(c.op);
      const Tensor g = grad(sum_all(unary(c.op, x)), {x}, {.create_graph = true})[0];
      EXPECT_NEAR(item(g), c.first, 1e-14) << name_of(c.op);
      EXPECT_NEAR(item(grad(sum_all(g), {x})[0]), c.second, 1e-14) << name_of(c.op);
    }
  });
}

TEST(Elementwise, BinaryOpsAndBroadcastsPassCheckOp) {
  const struct {
    const char* name;
    OpFunction f;
  } kOps[] = {{"add", [](const Xs& x) { return x[0] + x[1]; }},
              {"sub", [](const Xs& x) { return x[0] - x[1]; }},
              {"mul", [](const Xs& x) { return x[0] * x[1]; }},
              {"div", [](const Xs& x) { return x[0] / x[1]; }}};
  const std::pair<Shape, Shape> kShapes[] = {{{3, 4}, {3, 4}}, {{2, 3, 4}, {4}}, {{3, 1}, {1, 4}},
                                             {{3, 4}, {3, 1}}, {{4}, {2, 1, 4}}, {{3, 2}, {}}};
  for (const auto& op : kOps)
    for (const auto& [a, b] : kShapes) {
      OpCase c{fmt::format("{} {} {}", op.name, to_string(a), to_string(b)), {{a}, {b, 0.5, 1.5}}, op.f};
      c.inputs[0].units = c.inputs[1].units = {1, 2};
      c.combinations = 80;
      check_op(c);
    }
}

TEST(Elementwise, HiddenDimsAlignFromTheLeft) {
  // x [T; B, C] with w [T; C] and b [C]: the hidden T of w does not align with the visible B of x.
  Input x{{2, 3, 4}}, w{{2, 4}, 0.5, 1.5}, b{{4}};
  x.hidden = w.hidden = 1;
  OpCase c{"hidden", {x, w, b}, [](const Xs& x) { return x[0] * x[1] / x[1] + x[0] * x[1] + x[2]; }};
  c.combinations = 120;
  check_op(c);
  // An operand without the hidden dim comes first.
  check_op({"hidden second", {b, w}, [](const Xs& x) { return x[0] * x[1]; }});
}

TEST(Elementwise, NaryAddPassesCheckOp) {
  OpCase c{"add3", {{{3, 4}}, {{3, 1}}, {{4}}}, [](const Xs& x) { return add({x[0], x[1], x[2], x[0]}); }};
  check_op(c);
}

TEST(Elementwise, ScaleShiftAndBiasPassCheckOp) {
  check_op({"scale", {{{5, 2}}}, [](const Xs& x) { return scale(x[0], -0.7) * 2.0; }});
  check_op({"add_scalar", {{{5, 2}}}, [](const Xs& x) { return add_scalar(x[0], 3) + add_scalar(x[0], 0); }});
  OpCase c{"bias", {{{3, 4}}, {{4}}}, [](const Xs& x) { return add_bias(x[0], x[1]); }};
  c.inputs[0].units = c.inputs[1].units = {1, 3};
  check_op(c);
  Input y{{2, 3, 4}}, b{{2, 4}};
  y.hidden = b.hidden = 1;
  check_op({"hidden bias", {y, b}, [](const Xs& x) { return add_bias(x[0], x[1]); }});
  y.shape = {3, 4};
  y.hidden = 0;
  check_op({"hidden bias of a shared y", {y, b}, [](const Xs& x) { return add_bias(x[0], x[1]); }});
}

TEST(Elementwise, MaximumMinimumAndComparePassCheckOp) {
  check_op({"maximum", {{{3, 4}}, {{4}}}, [](const Xs& x) { return maximum(x[0], x[1]); }});
  check_op({"minimum", {{{3, 4}}, {{3, 1}}}, [](const Xs& x) { return minimum(x[0], x[1]); }});
  OpCase c{"compare", {{{3, 4}}, {{4}}}, [](const Xs& x) { return compare(Binary::lt, x[0], x[1]); }};
  c.differentiable = false;
  check_op(c);
}

TEST(Elementwise, StopGradientPassesNoGradient) {
  check_op({"stop", {{{3}}}, [](const Xs& x) { return x[0] * stop_gradient(x[0]) + x[0]; }, false});
  on_one_rank([](Context&) {
    const Tensor x = full({3}, 2, DType::f64).watched();
    EXPECT_EQ(to_values(grad(sum_all(x * stop_gradient(x)), {x})[0]), (std::vector<double>{2, 2, 2}));
  });
}

// More ranks than elements, dims of size zero.
TEST(Elementwise, EmptyShardsAndEmptyTensorsPassCheckOp) {
  check_op({"one element", {{{1, 2}}, {{2}}}, [](const Xs& x) { return x[0] * x[1] + exp(x[0]); }});
  check_op({"no rows", {{{0, 2}}, {{2}}}, [](const Xs& x) { return x[0] * x[1] + x[0]; }});
}

TEST(Elementwise, NumbersAreOperands) {
  on_one_rank([](Context&) {
    const Tensor x = full({2}, 0.5);
    EXPECT_EQ(to_values(x + 1), (std::vector<double>{1.5, 1.5}));
    EXPECT_EQ(to_values(1 + x), (std::vector<double>{1.5, 1.5}));
    EXPECT_EQ(to_values(x - 2), (std::vector<double>{-1.5, -1.5}));
    EXPECT_EQ(to_values(2 - x), (std::vector<double>{1.5, 1.5}));
    EXPECT_EQ(to_values(x / 4), (std::vector<double>{0.125, 0.125}));
  });
}

TEST(Elementwise, ATensorOfAnotherRunIsAnError) {
  Tensor kept;
  on_one_rank([&](Context&) { kept = full({2}, 1); });
  on_one_rank([&](Context&) {
    EXPECT_THROW(kept + 1, BugError);
    EXPECT_THROW(full({2}, 1) * kept, BugError);
  });
}

TEST(Elementwise, MisuseIsAnError) {
  on_one_rank([](Context&) {
    const Tensor a = zeros({2, 3}), b = zeros({2, 2}), d = zeros({2, 3}, DType::f64),
                 i = from_ids({3}, {{1, 2, 3}});
    EXPECT_THROW(a + b, BugError);
    EXPECT_THROW(a * b, BugError);
    EXPECT_THROW(a + d, BugError);
    EXPECT_THROW(add({a, a, d}), BugError);
    EXPECT_THROW(a * i, BugError);
    EXPECT_THROW(a + i, BugError);
    EXPECT_THROW(a + Tensor(), BugError);
    EXPECT_THROW(Tensor() * a, BugError);
    EXPECT_THROW(add({a, Tensor(), a}), BugError);
    EXPECT_THROW(scale(Tensor(), 2), BugError);
    EXPECT_THROW(exp(Tensor()), BugError);
    EXPECT_THROW(i + i, BugError);
    EXPECT_THROW(exp(i), BugError);
  });
}

}  // namespace
}  // namespace redco

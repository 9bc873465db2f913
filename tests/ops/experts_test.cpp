#include "ops/experts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/dispatch.h"
#include "ops/shape.h"
#include "support/op_cases.h"

namespace redco {
namespace {

using namespace redco::testing;
using Xs = std::vector<Tensor>;

// The router's outputs are the weights; the k largest are chosen.
OpFunction with(i64 k, kernels::Unary activation = kernels::Unary::silu, bool composed = false) {
  return [=](const Xs& x) {
    const ExpertsOptions o{.activation = activation, .per_row = k};
    const Tensor chosen = top_k_mask(x[1], k);
    return (composed ? experts_composed : experts)(x[0], x[1], chosen, {x[2], x[3], x[4]}, o);
  };
}
// The same with biases of the inner layers, which are limited (gpt-oss).
OpFunction limited(i64 k, double limit, bool composed = false) {
  return [=](const Xs& x) {
    const ExpertsOptions o{.per_row = k, .limit = limit, .alpha = 1.3};
    const Tensor chosen = top_k_mask(x[1], k);
    return (composed ? experts_composed : experts)(x[0], x[1], chosen, {x[2], x[3], x[4], x[5], x[6]}, o);
  };
}
std::vector<Input> inputs(const Shape& rows, i64 E, i64 C, i64 I) {
  Shape x = rows, w = rows;
  x.push_back(C);
  w.push_back(E);
  return {{x}, {w}, {{E, I, C}}, {{E, I, C}}, {{E, C, I}}};
}

std::vector<Input> biased_inputs(const Shape& rows, i64 E, i64 C, i64 I) {
  std::vector<Input> in = inputs(rows, E, C, I);
  in.push_back({{E, I}});
  in.push_back({{E, I}});
  return in;
}

// Every cut of every input: along the experts (uneven, and empty with more ranks than experts), inside them,
// and cuts that only the composed form supports.
TEST(Experts, DerivativesAndPlacements) {
  OpCase c{"two of three", inputs({2, 2}, 3, 3, 2), with(2)};
  c.combinations = 80;
  check_op(c);
  check_op({"one of two", inputs({3}, 2, 2, 2), with(1, kernels::Unary::gelu), true, 40});
  check_op({"all", inputs({3}, 2, 2, 2), with(2), true, 40});
  check_op({"no rows", inputs({0}, 2, 2, 2), with(1), true, 20});
  check_op({"composed", inputs({2}, 2, 2, 2), with(1, kernels::Unary::silu, true), true, 20});
}
// No value is at a limit, where there is no derivative.
TEST(Experts, BiasesAndLimits) {
  check_op({"limited", biased_inputs({2, 2}, 3, 2, 2), limited(2, 0.6), true, 60});
  check_op({"far limits", biased_inputs({3}, 2, 2, 3), limited(1, 50), true, 30});
  check_op({"limited composed", biased_inputs({2}, 2, 2, 2), limited(1, 0.6, true), true, 20});
}
TEST(Experts, LimitsApplyOnBothSides) {
  on_one_rank([](Context&) {
    const Numbers n = numbers_of({"", biased_inputs({40}, 2, 3, 2), limited(1, 0.4)}, 9);
    const OpCase fused{"", biased_inputs({40}, 2, 3, 2), limited(1, 0.4)};
    const OpCase composed{"", biased_inputs({40}, 2, 3, 2), limited(1, 0.4, true)};
    const OpCase far{"", biased_inputs({40}, 2, 3, 2), limited(1, 1e9)};
    const std::vector<Layout> layouts(7);
    const auto a = run_case(fused, n, layouts, {}, 1), b = run_case(composed, n, layouts, {}, 1);
    EXPECT_LT(distance(a.value, b.value), 1e-13);
    for (size_t i = 0; i < a.first.size(); ++i) EXPECT_LT(distance(a.first[i], b.first[i]), 1e-12) << i;
    EXPECT_GT(distance(a.value, run_case(far, n, layouts, {}, 1).value), 1e-2);
  });
}

// With the layouts of the rules, only the output is moved.
TEST(Experts, CutsAlongAndInsideExpertsMoveOnlyTheOutput) {
  const OpCase c{"", inputs({5}, 3, 4, 6), with(2)};
  const Numbers n = numbers_of(c, 3);
  redco::testing::Results whole;
  on_one_rank([&](Context&) { whole = run_case(c, n, std::vector<Layout>(5), {}, 1); });
  const i64 before = composed_vjp_count();
  for (const bool inside : {false, true})
    for (const int ranks : {2, 3, 4}) {
      run_threads(ranks, [&](Group& world) {
        Context context({1, ranks}, world.split(0), test_queue());
        Context::Use use(context);
        std::vector<Layout> layouts(5);
        layouts[2][Axis::mp] = layouts[3][Axis::mp] = Placement::sharded(inside ? 1 : 0);
        layouts[4][Axis::mp] = Placement::sharded(inside ? 2 : 0);
        std::vector<Layout> of_gradients;
        const auto r = run_case(c, n, layouts, {}, 1, false, &of_gradients);
        EXPECT_LT(distance(r.value, whole.value), 1e-13);
        for (size_t i = 0; i < r.first.size(); ++i)
          EXPECT_LT(distance(r.first[i], whole.first[i]), 1e-13) << i;
        EXPECT_EQ(of_gradients[2], layouts[2]);
        EXPECT_EQ(of_gradients[4], layouts[4]);
        EXPECT_EQ(composed_vjp_count(), before);
      });
    }
}

TEST(Experts, OnlyChosenRowsCount) {
  on_one_rank([](Context&) {
    const OpCase c{"", inputs({4}, 3, 2, 2), with(1)};
    Numbers n = numbers_of(c, 5);
    n.inputs[1] = {9, 0, 0, 0, 9, 0, 9, 0, 0, 0, 9, 0};  // no row uses the third expert
    for (size_t i = 2; i < 5; ++i) std::fill(n.inputs[i].begin() + 8, n.inputs[i].end(), NAN);
    const auto r = run_case(c, n, std::vector<Layout>(5), {}, 1);
    for (const double y : r.value) EXPECT_TRUE(std::isfinite(y));
    for (size_t i = 8; i < 12; ++i) EXPECT_EQ(r.first[2][i], 0);
  });
}

// More rows than fit in a piece: the results of an expert's pieces add up.
TEST(Experts, RowsOfSeveralPiecesAddUp) {
  on_one_rank([](Context&) {
    const OpCase fused{"", inputs({2500}, 2, 3, 2), with(1)};
    const OpCase composed{"", inputs({2500}, 2, 3, 2), with(1, kernels::Unary::silu, true)};
    Numbers n = numbers_of(fused, 7);
    n.cotangent = Random(8).values(2500 * 3);
    const auto a = run_case(fused, n, std::vector<Layout>(5), {}, 1),
               b = run_case(composed, n, std::vector<Layout>(5), {}, 1);
    EXPECT_LT(distance(a.value, b.value), 1e-13);
    for (size_t i = 0; i < a.first.size(); ++i) EXPECT_LT(distance(a.first[i], b.first[i]), 1e-11) << i;
  });
}

// Frozen matrices cost no products of their gradients, and are multiplied in the type that they are stored
// in.
TEST(Experts, FrozenMatricesGetNoGradients) {
  on_one_rank([](Context& c) {
    if (!c.has(&Kernels::experts)) GTEST_SKIP() << "this device composes experts";
    const i64 R = 37, E = 3, C = 64, I = 96;
    Random r(11);
    const Shape shapes[] = {{R, C}, {R, E}, {E, I, C}, {E, I, C}, {E, C, I}};
    std::vector<Tensor> stored, wide;
    const auto gradients = [&](const std::vector<Tensor>& given, bool trained, double* flops) {
      std::vector<Tensor> in = given;
      std::vector<Tensor> wanted;
      for (std::size_t i = 0; i < (trained ? 5u : 2u); ++i) wanted.push_back(in[i] = in[i].watched());
      c.keep_ledger();
      const auto d = grad(sum_all(square(with(2)(in))), wanted);
      *flops = 0;
      for (const LedgerLine& line : c.ledger()->lines())
        if (line.what == "experts_backward") *flops += static_cast<double>(line.flops);
      return std::vector{to_values(d[0]), to_values(d[1])};
    };
    for (const DType type : {DType::f32, DType::bf16, DType::q8, DType::q4}) {
      stored.clear(), wide.clear();
      for (std::size_t i = 0; i < 5; ++i) {
        const Tensor t = place(shapes[i], r.values(numel(shapes[i])), {}, DType::f32);
        stored.push_back(i < 2 || type == DType::f32 ? t : cast(t, type));
        wide.push_back(i < 2 || type == DType::f32 ? t : cast(stored.back(), DType::f32));
      }
      double of_all = 0, of_frozen = 0;
      const auto want = gradients(wide, true, &of_all), is = gradients(stored, false, &of_frozen);
      EXPECT_DOUBLE_EQ(of_frozen, of_all / 2) << name_of(type);
      // Sums of up to 192 products in another order.
      for (std::size_t i = 0; i < 2; ++i)
        EXPECT_LT(distance(is[i], want[i]), type == DType::f32 ? 1e-30 : 1e-5) << name_of(type);
    }
  });
}

TEST(TopKMask, TheFirstOfEqualElementsWins) {
  on_one_rank([](Context&) {
    const Tensor x = from_values({2, 4}, std::vector<double>{1, 3, 3, 2, 5, 5, 5, 5});
    EXPECT_THAT(to_values(top_k_mask(x, 2)), ::testing::ElementsAre(0, 1, 1, 0, 1, 1, 0, 0));
    EXPECT_THAT(to_values(top_k_mask(x, 1)), ::testing::ElementsAre(0, 1, 0, 0, 1, 0, 0, 0));
    EXPECT_THROW(top_k_mask(x, 5), BugError);
  });
}

}  // namespace
}  // namespace redco

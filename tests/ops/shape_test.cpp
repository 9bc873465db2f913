#include "ops/shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/dispatch.h"
#include "support/error_text.h"
#include "support/op_cases.h"

namespace redco {
namespace {

using namespace redco::testing;
using Xs = std::vector<Tensor>;

TEST(Shape, ReshapePassesCheckOp) {
  const std::pair<Shape, Shape> kShapes[] = {
      {{4, 6}, {24}},       {{24}, {4, 6}},          {{2, 3, 4}, {6, 4}}, {{6, 4}, {2, 3, 4}},
      {{2, 12}, {2, 4, 3}}, {{4, 6}, {2, 2, 6}},     {{1, 6}, {6}},       {{6}, {1, 6, 1}},
      {{3, 4}, {4, 3}},     {{2, 1, 10}, {2, 5, 2}}, {{0, 3}, {3, 0}}};
  for (const auto& [from, to] : kShapes) {
    const Shape shape = to;
    OpCase c{
        to_string(from) + to_string(to), {{from}}, [shape](const Xs& x) { return reshape(x[0], shape); }};
    c.inputs[0].units = {1, 2, 3, 4};
    c.combinations = 60;
    check_op(c);
  }
  on_one_rank([](Context&) {
    EXPECT_EQ(reshape(zeros({4, 6}), {3, -1}).shape(), (Shape{3, 8}));
    EXPECT_THROW(reshape(zeros({4, 6}), {5, -1}), BugError);
    EXPECT_THROW(reshape(zeros({4, 6}), {-1, -1}), BugError);
    EXPECT_THROW(reshape(zeros({4, 6}), {23}), BugError);
  });
}

// Where reshape_placement keeps a cut, every rank's block contains the same elements before and after, for
// random shapes, units and numbers of ranks.
TEST(Shape, ReshapeKeepsACutOnlyAtTheSameElements) {
  Random random(3);
  int kept = 0;
  for (int round = 0; round < 20000; ++round) {
    // Factors a number at random.
    auto factor = [&](i64 n) {
      Shape s;
      while (n > 1) {
        std::vector<i64> divisors;
        for (i64 d = 2; d <= n; ++d)
          if (n % d == 0) divisors.push_back(d);
        s.push_back(divisors[random.below(static_cast<i64>(divisors.size()))]);
        n /= s.back();
        if (random.below(4) == 0) s.push_back(1);
      }
      if (s.empty()) s.push_back(1);
      return s;
    };
    const i64 sizes[] = {12, 24, 36, 30, 16};
    const i64 n = sizes[random.below(5)];
    const Shape from = factor(n), to = factor(n);
    const int dim = static_cast<int>(random.below(static_cast<i64>(from.size())));
    const Placement p = Placement::sharded(dim, 1 + random.below(from[dim] + 1));
    Placement q;
    if (!reshape_placement(from, to, p, &q)) continue;
    ++kept;
    auto owner = [](const Shape& s, const Placement& pl, int ranks, i64 element) {
      i64 inner = 1;
      for (size_t d = pl.dim + 1; d < s.size(); ++d) inner *= s[d];
      const i64 i = element / inner % s[pl.dim];
      for (int r = 0; r < ranks; ++r) {
        const Range range = shard_range(s[pl.dim], pl.unit, ranks, r);
        if (i >= range.begin && i < range.end) return r;
      }
      return -1;
    };
    for (int ranks : {1, 2, 3, 5})
      for (i64 e = 0; e < n; ++e)
        ASSERT_EQ(owner(from, p, ranks, e), owner(to, q, ranks, e))
            << to_string(from) << " " << to_string(p) << " -> " << to_string(to) << " " << to_string(q);
  }
  EXPECT_GT(kept, 3000);  // many cuts are kept
}

TEST(Shape, PermuteAndTransposePassCheckOp) {
  check_op({"permute", {{{2, 3, 4}}}, [](const Xs& x) { return permute(x[0], {2, 0, 1}); }});
  check_op({"transpose", {{{2, 3, 4}}}, [](const Xs& x) { return transpose(x[0], 0, -1); }});
  Input x{{2, 3, 4}};
  x.hidden = 1;
  check_op({"hidden", {x}, [](const Xs& in) { return transpose(in[0], 0, 1); }});
}

TEST(Shape, NarrowPadAndConcatPassCheckOp) {
  check_op({"narrow", {{{4, 5}}}, [](const Xs& x) { return narrow(x[0], 1, 1, 3); }});
  check_op({"narrow to nothing", {{{4, 5}}}, [](const Xs& x) { return narrow(x[0], 0, 4, 0); }});
  check_op({"pad", {{{2, 3}}}, [](const Xs& x) { return pad_to(x[0], 0, 1, 5); }});
  check_op({"concat 0", {{{2, 3}}, {{3, 3}}}, [](const Xs& x) { return concat({x[0], x[1], x[0]}, 0); }});
  OpCase c{"concat 1", {{{3, 2}}, {{3, 1}}}, [](const Xs& x) { return concat({x[0], x[1]}, -1); }};
  c.inputs[0].units = c.inputs[1].units = {1, 2};
  check_op(c);
  OpCase ids{"ids", {ids_input({2, 3}, {1, -2, 3, 4, 5, -6}), ids_input({2, 1}, {7, -8})}, [](const Xs& x) {
               return label_mask(concat({narrow(x[0], 1, 1, 2), x[1]}, 1), DType::f64);
             }};
  ids.differentiable = false;
  check_op(ids);
}

TEST(Shape, TensorsThatDoNotFitAreErrors) {
  on_one_rank([](Context&) {
    const Tensor a = zeros({4, 2}), b = zeros({4, 1}), ids = from_ids({4, 2}, std::vector<i32>(8, 1));
    const auto says = [](const std::function<void()>& f) { return error_text<BugError>(f); };
    EXPECT_THAT(says([&] { concat({a, b}, 0); }), ::testing::HasSubstr("[concat] f32 (4, 1)"));
    EXPECT_EQ(concat({a, b}, 1).shape(), (Shape{4, 3}));
    EXPECT_THAT(says([&] { concat({a, ids}, 0); }), ::testing::HasSubstr("[concat] i32 (4, 2)"));
    EXPECT_THAT(says([&] { concat({a, zeros({2})}, 0); }), ::testing::HasSubstr("[concat] f32 (2)"));
    EXPECT_THAT(says([&] { concat({}, 0); }), ::testing::HasSubstr("[concat] no tensors"));
    EXPECT_THAT(says([&] { permute(a, {1, 1}); }), ::testing::HasSubstr("dim 1 is given twice"));
  });
}

TEST(Shape, BroadcastToPassesCheckOp) {
  check_op({"visible", {{{3, 1}}}, [](const Xs& x) { return broadcast_to(x[0], {2, 3, 4}); }});
  check_op({"scalar", {{{}}}, [](const Xs& x) { return broadcast_to(x[0], {2, 3}); }});
  for (const Placement& p : {Placement::sharded(0), Placement::sharded(1, 2), Placement::partial()})
    check_op({"wish " + to_string(p), {{{3, 1}}}, [p](const Xs& x) {
                return broadcast_to(x[0], Shape{3, 5}, on_both(p, Placement::replicated()));
              }});
}

TEST(Shape, CastConvertsValuesAndGradients) {
  on_mesh({1, 2}, [](Context&) {
    const Tensor x = place({3}, {1, 2, 0.1}, on_mp(Placement::sharded(0))).watched();
    const Tensor y = cast(x, DType::f32);
    EXPECT_EQ(y.dtype(), DType::f32);
    EXPECT_EQ(to_values(y), (std::vector<double>{1, 2, 0.1f}));
    const Tensor g = grad(sum_all(square(y)), {x})[0];
    EXPECT_EQ(g.dtype(), DType::f64);
    EXPECT_EQ(to_values(g), (std::vector<double>{2, 4, 2 * 0.1f}));
  });
}

// A number is cut after the parts of a Partial are added.
TEST(Shape, CastToIntegersRoundsTheSum) {
  on_mesh({1, 2}, [](Context&) {
    const Tensor x = place({4}, {1.5, -2.5, 7, 0.75}, on_mp(Placement::partial()));
    EXPECT_EQ(to_ids(cast(x, DType::i32)), (std::vector<i32>{1, -2, 7, 0}));
    const Tensor ids = from_ids({2}, {{3, -4}});
    EXPECT_EQ(to_float(ids).dtype(), DType::f32);
    EXPECT_EQ(to_values(to_float(ids, DType::f64)), (std::vector<double>{3, -4}));
    EXPECT_THROW(to_float(x), BugError);
  });
}

// Groups that cross ranks, weights and biases, repeats that do not divide the number of ranks.
TEST(Heads, RepeatAndSumPassCheckOp) {
  for (i64 f : {1, 2, 3})
    for (const Placement& p : {Placement::replicated(), Placement::sharded(0, 2), Placement::sharded(0, 4)}) {
      OpCase repeat{fmt::format("repeat {} {}", f, to_string(p)), {{{6, 3}}}, [=](const Xs& x) {
                      return repeat_heads(x[0], 2, f, on_both(p, p));
                    }};
      repeat.inputs[0].units = {1, 2, 4};
      repeat.combinations = 60;
      check_op(repeat);
      OpCase sum{
          fmt::format("sum {}", f), {{{4 * f, 3}}}, [=](const Xs& x) { return sum_heads(x[0], 2, f); }};
      sum.inputs[0].units = {1, 2, 2 * f, 4 * f};
      sum.combinations = 60;
      check_op(sum);
    }
  check_op(
      {"bias", {{{4}}}, [](const Xs& x) { return repeat_heads(x[0], 2, 3, on_mp(Placement::sharded(0))); }});
  Input w{{2, 4, 3}};
  w.hidden = 1;
  check_op(
      {"hidden", {w}, [](const Xs& x) { return repeat_heads(x[0], 2, 2, on_mp(Placement::sharded(1))); }});
}

// Every pair of cuts of the heads, also in units that don't line up, and every pair of wishes.
TEST(Heads, AreRepeatedAndSummedOnEveryPairOfCuts) {
  constexpr i64 kWidth = 2, kRepeats = 2;
  const Shape few{8}, many{kRepeats * 8};
  const std::vector<double> w = Random(1).values(8), g = Random(2).values(kRepeats * 8);
  std::vector<double> repeated(g.size()), summed(w.size());
  for (i64 i = 0; i < kRepeats * 8; ++i) {
    const i64 from = i / (kWidth * kRepeats) * kWidth + i % kWidth;
    repeated[i] = w[from];
    summed[from] += g[i];
  }
  const std::vector<Placement> cuts = {{},
                                       Placement::partial(),
                                       Placement::sharded(0, 1),
                                       Placement::sharded(0, kWidth),
                                       Placement::sharded(0, 2 * kWidth),
                                       Placement::sharded(0, 3 * kWidth)};
  const auto check = [&](const Mesh& mesh, Axis other) {
    on_mesh(mesh, [&](Context&) {
      const auto layout = [&](const Placement& p, const Placement& q) {
        Layout l = on_mp(p);
        l[other] = q;
        return l;
      };
      for (const Placement& p : cuts)
        for (const Placement& q : cuts) {
          const Layout l = layout(p, q);
          // Sums of at most two numbers and, where they are Partial, of their parts.
          ASSERT_LT(distance(to_values(sum_heads(place(many, g, l), kWidth, kRepeats)), summed), 1e-12)
              << to_string(l, mesh);
          for (const Placement& wish : cuts)
            for (const Placement& other_wish : cuts) {
              const Layout like = layout(wish, other_wish);
              ASSERT_LT(distance(to_values(repeat_heads(place(few, w, l), kWidth, kRepeats, like)), repeated),
                        1e-12)
                  << to_string(l, mesh) << " like " << to_string(like, mesh);
            }
        }
    });
  };
  check(Mesh(2, 2), Axis::dp);
  check(Mesh(3, 2), Axis::dp);
  check(Mesh(1, 2, {{"sp", 2, AxisRole::model}}), Axis(2));
}

TEST(Reduce, SumMeanAndMaxPassCheckOp) {
  check_op({"sum", {{{2, 3, 4}}}, [](const Xs& x) { return sum(x[0], {1}); }});
  check_op({"sum keepdim", {{{2, 3, 4}}}, [](const Xs& x) { return sum(x[0], {0, -1}, true); }});
  check_op({"sum_all", {{{3, 4}}}, [](const Xs& x) { return sum_all(x[0]); }});
  check_op({"mean", {{{3, 4}}}, [](const Xs& x) { return mean(x[0], {-1}); }});
  check_op({"of one", {{{1, 3}}}, [](const Xs& x) { return sum(square(x[0]), {0}) + mean(x[0], {0}); }});
  check_op({"of none", {{{0, 3}}}, [](const Xs& x) { return sum(x[0], {0}); }});
  OpCase max{"max", {{{3, 4}}}, [](const Xs& x) { return max_last(x[0]); }};
  max.inputs[0].units = {1, 3};
  max.differentiable = false;
  check_op(max);
  Input x{{2, 3, 4}};
  x.hidden = 1;
  check_op({"hidden", {x}, [](const Xs& in) { return sum(in[0], {0}) + mean(in[0], {0, 1}); }});
}

TEST(Reduce, SumToPassesCheckOp) {
  check_op({"sum_to", {{{2, 3, 4}}}, [](const Xs& x) { return sum_to(x[0], {3, 1}, 0); }});
  Input x{{2, 3, 4}};
  x.hidden = 1;
  check_op({"to hidden", {x}, [](const Xs& in) { return sum_to(in[0], {2, 4}, 1); }});
  check_op({"to none", {x}, [](const Xs& in) { return sum_to(in[0], {4}, 0); }});
}

TEST(Alias, IsTheSameValue) {
  check_op({"alias", {{{3, 4}}}, [](const Xs& x) { return alias(x[0]) * x[0]; }});
}

}  // namespace
}  // namespace redco

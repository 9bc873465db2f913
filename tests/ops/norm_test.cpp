#include "ops/norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/dispatch.h"
#include "ops/shape.h"
#include "ops/softmax.h"
#include "support/op_cases.h"

namespace redco {
namespace {

using namespace redco::testing;
using Xs = std::vector<Tensor>;

constexpr double kEps = 1e-5;

Tensor at(const Xs& x, size_t i) { return i < x.size() ? x[i] : Tensor(); }

TEST(LayerNorm, PassesCheckOpWithAndWithoutParameters) {
  auto f = [](const Xs& x) { return layer_norm(x[0], at(x, 1), at(x, 2), kEps); };
  OpCase c{"w and b", {{{3, 4}}, {{4}}, {{4}}}, f};
  c.inputs[0].units = {1, 2};
  check_op(c);
  check_op({"batch dims", {{{2, 3, 4}}, {{4}}}, f});
  check_op({"plain", {{{3, 5}}}, f});
  check_op({"b only", {{{3, 4}}, {{4}}}, [](const Xs& x) { return layer_norm(x[0], {}, x[1], kEps); }});
}

TEST(LayerNorm, TheComposedFormPassesCheckOp) {
  OpCase c{"composed", {{{3, 4}}, {{4}}, {{4}}}, [](const Xs& x) {
             return layer_norm_composed(x[0], x[1], x[2], kEps);
           }};
  check_op(c);
}

TEST(RmsNorm, PassesCheckOpWithAndWithoutWeight) {
  auto f = [](const Xs& x) { return rms_norm(x[0], at(x, 1), kEps); };
  check_op({"w", {{{2, 3, 4}}, {{4}}}, f});
  check_op({"plain", {{{3, 4}}}, f});
  check_op({"composed", {{{3, 4}}, {{4}}}, [](const Xs& x) { return rms_norm_composed(x[0], x[1], kEps); }});
}

TEST(RmsNorm, OfACutDimReducesANumberPerRow) {
  on_mesh({1, 2}, [](Context& c) {
    const Tensor x = place({3, 8}, Random(1).values(24), on_mp(Placement::sharded(1, 2)));
    const Tensor w = place({8}, Random(2).values(8), on_mp(Placement::sharded(0, 2)));
    c.keep_ledger();
    const Tensor y = rms_norm(x, w, kEps);
    i64 bytes = 0;
    for (const LedgerLine& l : c.ledger()->collectives()) bytes += l.bytes;
    EXPECT_EQ(bytes, 3 * static_cast<i64>(sizeof(double)));
    EXPECT_EQ(y.layout(), x.layout());
    EXPECT_LT(distance(to_values(y), to_values(rms_norm(to_replicated(x), to_replicated(w), kEps))), 1e-14);
  });
}

TEST(Norms, FusedEqualsComposed) {
  on_one_rank([](Context&) {
    const Shape s = {3, 5};
    const Numbers n = numbers_of({"", {{s, -3, 3}, {{5}}, {{5}}}, {}}, 5);
    const Tensor x = place(s, n.inputs[0], {}), w = place({5}, n.inputs[1], {}),
                 b = place({5}, n.inputs[2], {});
    EXPECT_LT(distance(to_values(layer_norm(x, w, b, kEps)), to_values(layer_norm_composed(x, w, b, kEps))),
              1e-14);
    EXPECT_LT(distance(to_values(rms_norm(x, w, kEps)), to_values(rms_norm_composed(x, w, kEps))), 1e-14);
  });
}

TEST(Norms, ParametersPerTaskPassCheckOp) {
  Input x{{2, 3, 4}}, w{{2, 4}}, b{{2, 4}};
  x.hidden = w.hidden = b.hidden = 1;
  check_op({"layer norm", {x, w, b}, [](const Xs& in) { return layer_norm(in[0], in[1], in[2], kEps); }});
  check_op({"rms norm", {x, w}, [](const Xs& in) { return rms_norm(in[0], in[1], kEps); }});
  check_op({"shared", {x, {{4}}, {{4}}}, [](const Xs& in) { return layer_norm(in[0], in[1], in[2], kEps); }});
}

TEST(Norms, ZeroRowsPassCheckOp) {
  check_op({"no rows", {{{0, 4}}, {{4}}, {{4}}}, [](const Xs& x) {
              return layer_norm(x[0], x[1], x[2], kEps) + rms_norm(x[0], x[1], kEps);
            }});
}

// The fused backward is used only for gradients that are not differentiated again.
TEST(Norms, TheComposedVjpIsUsedForSecondDerivativesOnly) {
  on_one_rank([](Context&) {
    const Tensor x = from_values({2, 3}, std::vector<double>{1, 2, 4, -1, 0, 2}).watched();
    auto loss = [&] { return sum_all(square(layer_norm(x, {}, {}, kEps)) * x); };
    const i64 before = composed_vjp_count();
    grad(loss(), {x});
    EXPECT_EQ(composed_vjp_count(), before);
    grad(loss(), {x}, {.create_graph = true});
    EXPECT_EQ(composed_vjp_count(), before + 1);
  });
}

TEST(Softmax, EveryPlacementPassesCheckOp) {
  OpCase c{"softmax", {{{2, 3, 4}, -3, 3}}, [](const Xs& x) { return softmax(x[0]); }};
  c.inputs[0].units = {1, 2};
  check_op(c);
  check_op({"log_softmax", {{{3, 4}, -3, 3}}, [](const Xs& x) { return log_softmax(x[0]); }});
  check_op({"vector", {{{5}, -3, 3}}, [](const Xs& x) { return softmax(x[0]) + log_softmax(x[0]); }});
  check_op({"no rows", {{{0, 5}}}, [](const Xs& x) { return softmax(x[0]) + log_softmax(x[0]); }});
}

// Over a cut dim: the maximum and the sum in the forward, one sum in the backward, each one number per row.
TEST(Softmax, LogSoftmaxOfACutDimSendsOneNumberPerRow) {
  static constexpr i64 kRows = 6, kWide = 40, kNumbers = kRows * static_cast<i64>(sizeof(double));
  on_mesh({1, 2}, [](Context& c) {
    const Tensor x =
        place({kRows, kWide}, Random(1).values(kRows * kWide), on_mp(Placement::sharded(1))).watched();
    const auto sent = [&] {
      i64 bytes = 0;
      for (const LedgerLine& l : c.ledger()->collectives()) bytes += l.bytes;
      return bytes;
    };
    // The cotangent has the placement of the op that created it. R and S(1) send the same data.
    for (const Placement& p : {Placement::sharded(1), Placement::replicated()}) {
      c.keep_ledger();
      const Tensor y = log_softmax(x);
      EXPECT_EQ(sent(), 2 * kNumbers);
      vjp({y}, {place({kRows, kWide}, Random(2).values(kRows * kWide), on_mp(p))}, {x});
      EXPECT_EQ(sent(), 3 * kNumbers) << to_string(p);
    }
    // A cut cotangent of a Replicated value: its sum is reduced, not the broadcast of the sum. The gradient
    // may be gathered once.
    const Tensor whole = place({kRows, kWide}, Random(1).values(kRows * kWide), {}).watched();
    const Tensor y = log_softmax(whole);
    c.keep_ledger();
    vjp({y}, {place({kRows, kWide}, Random(2).values(kRows * kWide), on_mp(Placement::sharded(1)))}, {whole});
    EXPECT_LE(sent(), kNumbers + kWide * kNumbers);
    for (const LedgerLine& l : c.ledger()->collectives())
      if (l.what == "all_reduce mp") EXPECT_EQ(l.bytes, kNumbers);
  });
}

TEST(Softmax, LargeNumbersAndMaskedRowsStayFinite) {
  on_one_rank([](Context&) {
    const double inf = INFINITY;
    const Tensor x = from_values({3, 2}, std::vector<double>{1e4, 1e4 - 1, -inf, 0, -inf, -inf}).watched();
    const Tensor y = softmax(x);
    const double e = std::exp(-1.0);
    EXPECT_LT(distance(to_values(y), {1 / (1 + e), e / (1 + e), 0, 1, 0, 0}), 1e-15);
    for (double g : to_values(grad(sum_all(square(y)), {x})[0])) EXPECT_TRUE(std::isfinite(g));
  });
}

TEST(GroupNorm, PassesCheckOp) {
  OpCase c{"images", {{{2, 4, 3}}, {{4}}, {{4}}}, [](const Xs& x) {
             return group_norm(x[0], 2, x[1], x[2], kEps);
           }};
  c.inputs[0].units = c.inputs[1].units = {1, 2};
  c.combinations = 100;
  check_op(c);
  check_op({"plain", {{{1, 2, 2, 2}}}, [](const Xs& x) { return group_norm(x[0], 2, {}, {}, kEps); }});
}

TEST(GroupNorm, EachGroupHasMeanZeroAndVarianceOne) {
  on_one_rank([](Context&) {
    const Tensor x = place({2, 6, 5, 2}, Random(3).values(120, -3, 8), {});
    const Tensor y = group_norm(x, 3, {}, {}, 0);
    EXPECT_EQ(y.shape(), x.shape());
    const Tensor groups = reshape(y, {6, 20});
    EXPECT_LT(distance(to_values(mean(groups, {1})), std::vector<double>(6, 0.0)), 1e-14);
    EXPECT_LT(distance(to_values(mean(square(groups), {1})), std::vector<double>(6, 1.0)), 1e-14);
    const Tensor w = place({6}, {1, 2, 3, 4, 5, 6}, {}), b = place({6}, {6, 5, 4, 3, 2, 1}, {});
    const auto scaled = to_values(group_norm(x, 3, w, b, 0)), plain = to_values(y);
    for (size_t i = 0; i < plain.size(); ++i) {
      const double channel = static_cast<double>(i / 10 % 6);
      EXPECT_NEAR(scaled[i], plain[i] * (channel + 1) + 6 - channel, 1e-13);
    }
    EXPECT_THROW(group_norm(x, 4, {}, {}, 0), BugError);
  });
}

TEST(LogSumExp, PassesCheckOp) {
  OpCase c{"rows", {{{3, 4}, -3, 3}}, [](const Xs& x) { return log_sum_exp(x[0]); }};
  c.inputs[0].units = {1, 2};
  check_op(c);
  check_op({"keepdim", {{{2, 2, 3}}}, [](const Xs& x) { return x[0] - log_sum_exp(x[0], true); }});
}

TEST(LogSumExp, LargeNumbersAndMaskedRows) {
  on_one_rank([](Context&) {
    const double inf = INFINITY;
    const Tensor x =
        from_values({5, 2}, std::vector<double>{1e4, 1e4, -inf, 2, -inf, -inf, inf, 1, NAN, 1}).watched();
    const Tensor y = log_sum_exp(x);
    EXPECT_THAT(to_values(y), ::testing::ElementsAre(::testing::DoubleNear(1e4 + std::log(2.0), 1e-11), 2,
                                                     -inf, inf, ::testing::IsNan()));
    const std::vector<double> g = to_values(grad(sum_all(narrow(y, 0, 0, 3)), {x})[0]);
    EXPECT_THAT(std::vector<double>(g.begin(), g.begin() + 6), ::testing::ElementsAre(0.5, 0.5, 0, 1, 0, 0));
  });
}

TEST(Norms, AVectorOfAnotherSizeIsAnError) {
  on_one_rank([](Context&) {
    const Tensor x = full({2, 4}, 1);
    for (const i64 n : {2, 8}) {
      const Tensor v = full({n}, 1);
      EXPECT_THROW(layer_norm(x, v, {}, 1e-5), BugError);
      EXPECT_THROW(layer_norm(x, full({4}, 1), v, 1e-5), BugError);
      EXPECT_THROW(rms_norm(x, v, 1e-5), BugError);
    }
  });
}

}  // namespace
}  // namespace redco

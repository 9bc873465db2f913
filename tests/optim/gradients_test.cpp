// Gradients between backward and update: accumulated over micro-batches, reduced in buckets.
#include "optim/gradients.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "autograd/grad.h"
#include "models/spec_builder.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/linear.h"
#include "ops/redistribute.h"
#include "ops/reduce.h"
#include "support/ranks.h"
#include "tensor/profile.h"

namespace redco {
namespace {

using redco::testing::on_dp;
using redco::testing::on_mesh;
using redco::testing::on_mp;
using redco::testing::on_one_rank;
using redco::testing::place;

using Values = std::vector<std::vector<double>>;
constexpr StateSharding kAllSharding[] = {StateSharding::none, StateSharding::optimizer,
                                          StateSharding::gradients};

ModelParams three_weights() {
  ModelParams params;
  SpecBuilder b(params);
  for (const char* name : {"a", "b", "c"}) b.linear(name, 2, 3, false, 1);
  return params;
}

// Gradients of the sum over linear(x, a + b) and linear(x, c), in `micro` micro-batches; c is used twice.
// Reduced in buckets of `bucket` elements. `x` has the placement `layout`.
Values gradients(const Layout& layout, int micro, i64 bucket, StateSharding sharding = StateSharding::none) {
  const ModelParams layer = three_weights();
  ParamTree params = make_params(layer, std::vector<Layout>(3));
  for (Tensor& t : params.values()) t = full(t.shape(), 1);
  GradientBuckets buckets(params, sharding, bucket);
  for (int m = 0; m < micro; ++m) {
    const ParamTree p = params.watched();
    buckets.begin(p, m + 1 == micro);
    const Tensor x = place({4, 3}, redco::testing::Random(m + 1).values(12), layout, DType::f32);
    const Tensor y = linear(x, p["a.weight"] + p["b.weight"]);
    const Tensor z = linear(x, p["c.weight"]) + scale(linear(square(x), p["c.weight"]), 0.5);
    grad(sum_all(y) + sum_all(square(z)), p.values(), {.sink = &buckets});
  }
  const std::vector<Tensor> acc = buckets.finish();
  Values out;
  for (const Tensor& t : acc) {
    EXPECT_EQ(t.layout(), sharding == StateSharding::none ? Layout() : on_dp(Placement::sharded(0)));
    out.push_back(to_values(t));
  }
  return out;
}

// All three gradients in one bucket, one in each, and two in one.
TEST(Gradients, AnyBucketsGiveTheSumOverReplicasAndMicroBatches) {
  for (const int micro : {1, 2, 3}) {
    Values expected;
    on_one_rank([&](Context&) { expected = gradients({}, micro, kBucketElements); });
    for (const i64 bucket : {i64{1}, i64{6}, i64{12}, kBucketElements}) {
      const auto check = [&](const Layout& layout) {
        Values unsharded;
        for (const StateSharding sharding :
             {StateSharding::none, StateSharding::optimizer, StateSharding::gradients}) {
          const Values got = gradients(layout, micro, bucket, sharding);
          for (size_t k = 0; k < 3; ++k)
            EXPECT_LT(redco::testing::distance(got[k], expected[k]), 1e-6)
                << "gradient " << k << ", " << micro << " micro-batches, buckets of " << bucket << ", "
                << name_of(sharding) << ": " << redco::testing::show(got[k]) << ", on one rank "
                << redco::testing::show(expected[k]);
          if (sharding == StateSharding::none) unsharded = got;
          if (sharding == StateSharding::optimizer || micro == 1) EXPECT_EQ(got, unsharded);
        }
      };
      on_mesh({2, 1}, [&](Context&) { check(on_dp(Placement::sharded(0))); });
      on_mesh({1, 2}, [&](Context&) { check(on_mp(Placement::sharded(0))); });
      on_mesh({2, 2}, [&](Context&) {
        check(redco::testing::on_both(Placement::sharded(0), Placement::sharded(0)));
      });
    }
  }
}

// In a chain of two layers the second one's gradient is complete first, and is reduced before the first one's
// is computed.
TEST(Gradients, AFullBucketIsReducedWhileTheBackwardPassGoesOn) {
  on_mesh({2, 1}, [](Context& c) {
    ModelParams chain;
    SpecBuilder b(chain);
    for (const char* name : {"a", "b"}) b.linear(name, 3, 3, false, 1);
    ParamTree params = make_params(chain, std::vector<Layout>(2));
    for (Tensor& t : params.values()) t = full(t.shape(), 1);
    GradientBuckets buckets(params, StateSharding::none, 9);
    const ParamTree p = params.watched();
    const Tensor x = place({4, 3}, std::vector<double>(12, 1), on_dp(Placement::sharded(0)), DType::f32);
    const Tensor loss = sum_all(square(linear(linear(x, p["a.weight"]), p["b.weight"])));
    c.start_profile();
    buckets.begin(p, true);
    grad(loss, p.values(), {.sink = &buckets});
    const auto found = buckets.finish();
    const auto profile = c.end_profile();
    // Ends of ops, starts of transfers and of waits.
    std::vector<std::pair<i64, std::string>> times;
    std::vector<std::string> order;
    for (const ProfileEvent& e : profile->events()) {
      if (e.kind == ProfileEvent::Kind::transfer || e.kind == ProfileEvent::Kind::collective)
        times.emplace_back(e.begin, e.kind == ProfileEvent::Kind::transfer ? "all_reduce" : "wait");
      if (e.kind == ProfileEvent::Kind::op && std::string(e.name) == "linear_weight_gradient")
        times.emplace_back(e.end, e.name);
    }
    std::stable_sort(times.begin(), times.end());
    for (const auto& [time, name] : times) order.push_back(name);
    EXPECT_EQ(order, (std::vector<std::string>{"linear_weight_gradient", "all_reduce",
                                               "linear_weight_gradient", "all_reduce", "wait", "wait"}));
    EXPECT_EQ(to_values(found[1]), std::vector<double>(9, 4 * 2 * 9 * 3.0));
  });
}

TEST(Gradients, OneBucketIsOneAllReduce) {
  on_mesh({2, 1}, [](Context& c) {
    const ModelParams layer = three_weights();
    const ParamTree params = make_params(layer, std::vector<Layout>(3)), p = params.watched();
    GradientBuckets buckets(params);
    c.keep_ledger();
    for (const bool last : {false, true}) {  // in the last micro-batch only
      buckets.begin(p, last);
      const Tensor x = place({4, 3}, std::vector<double>(12, 1), on_dp(Placement::sharded(0)), DType::f32);
      const Tensor sum = linear(x, p["a.weight"]) + linear(x, p["b.weight"]) + linear(x, p["c.weight"]);
      grad(sum_all(sum), p.values(), {.sink = &buckets});
      EXPECT_TRUE(c.ledger()->collectives().empty());
    }
    buckets.finish();
    const auto lines = c.ledger()->collectives();
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].count, 1);
    EXPECT_EQ(lines[0].where, "step/gradients");
    EXPECT_EQ(lines[0].bytes, 3 * 6 * 4);
  });
}

// A parameter may be used in some micro-batches only, or in none.
TEST(Gradients, UnusedParameters) {
  for (const int used_in : {0, 1, 2})
    on_mesh({2, 1}, [&](Context&) {
      const ModelParams layer = three_weights();
      const ParamTree params = make_params(layer, std::vector<Layout>(3)), p = params.watched();
      GradientBuckets buckets(params, StateSharding::none, 6);
      for (const int m : {1, 2}) {
        buckets.begin(p, m == 2);
        const Tensor x = place({2, 3}, std::vector<double>(6, 1), on_dp(Placement::sharded(0)), DType::f32);
        Tensor sum = linear(x, p["a.weight"]);
        if (m == used_in) sum = sum + linear(x, p["b.weight"]);
        grad(sum_all(sum), {p["a.weight"], p["b.weight"]}, {.sink = &buckets});
      }
      const auto found = buckets.finish();
      EXPECT_EQ(to_values(found[0]), std::vector<double>(6, 4));
      EXPECT_EQ(to_values(found[1]), std::vector<double>(6, used_in > 0 ? 2 : 0));
      EXPECT_FALSE(found[2].defined());  // it was not asked for
    });
}

// A gradient is written to its place, and micro-batches add to it: there is never a second one.
TEST(Gradients, ThereIsNoSecondSetOfGradients) {
  constexpr i64 kWidth = 512, kBytes = kWidth * kWidth * 4;
  on_one_rank([](Context& c) {
    ModelParams one;
    SpecBuilder(one).linear("a", kWidth, kWidth, false, 1);
    const ParamTree params = make_params(one, std::vector<Layout>(1)), p = params.watched();
    const auto peak = [&](int micro) {
      GradientBuckets buckets(params);
      i64 most = 0;
      for (int m = 0; m < micro; ++m) {
        buckets.begin(p, m + 1 == micro);
        grad(sum_all(linear(zeros({2, kWidth}), p["a.weight"])), p.values(), {.sink = &buckets});
        most = std::max(most, c.arena().in_use());
      }
      return most;
    };
    const i64 before = c.arena().in_use();
    EXPECT_LT(peak(1) - before, kBytes + kBytes / 10);
    EXPECT_LT(peak(3) - before, kBytes + kBytes / 10);
  });
}

// What a part's other holders see does not change.
TEST(Gradients, OtherHoldersKeepTheirValues) {
  on_mesh({2, 1}, [](Context&) {
    const ModelParams layer = three_weights();
    const ParamTree params = make_params(layer, std::vector<Layout>(3)), p = params.watched();
    const std::vector<double> values = {1, 2, 3, 4, 5, 6};
    const Tensor g = place({2, 3}, values, on_dp(Placement::partial()), DType::f32);
    GradientBuckets buckets(params);
    buckets.begin(p, true);
    const Node* const leaf = p["a.weight"].node().get();
    EXPECT_TRUE(buckets.add(leaf, g));
    EXPECT_TRUE(buckets.add(leaf, g));
    SmallVector<Tensor, 2> rest;
    buckets.complete(leaf, rest);
    const auto found = buckets.finish();
    EXPECT_LT(redco::testing::distance(to_values(found[0]), {2, 4, 6, 8, 10, 12}), 1e-6);
    EXPECT_LT(redco::testing::distance(to_values(g), values), 1e-6);
  });
}

// Each shard of the model has one of two stacked matrices, so the replicas share its rows.
TEST(Gradients, StackedMatricesAreCutByTheirRows) {
  ModelParams model;
  SpecBuilder b(model);
  b.add("stack", {2, 4, 3}, ParamKind::other, {Init::Kind::ones});
  Layout experts;
  experts[Axis::mp] = Placement::sharded(0);
  on_mesh({2, 2}, [&](Context&) {
    std::vector<double> unsharded;
    for (const StateSharding sharding : kAllSharding) {
      ParamTree params = make_params(model, {experts});
      for (Tensor& t : params.values()) t = redistribute(full(t.shape(), 1), experts);
      GradientBuckets buckets(params, sharding);
      const ParamTree p = params.watched();
      buckets.begin(p, true);
      Layout rows = experts;
      rows[Axis::dp] = Placement::sharded(1);
      const Tensor x = place({2, 6, 3}, redco::testing::Random(1).values(36), rows, DType::f32);
      grad(sum_all(square(matmul(x, p["stack"], false, true))), p.values(), {.sink = &buckets});
      const Tensor g = buckets.finish()[0];
      EXPECT_EQ(g.layout()[Axis::dp],
                sharding == StateSharding::none ? Placement::replicated() : Placement::sharded(1));
      const std::vector<double> got = to_values(g);
      if (sharding == StateSharding::none) unsharded = got;
      EXPECT_EQ(got, unsharded) << name_of(sharding);
    }
  });
}

}  // namespace
}  // namespace redco

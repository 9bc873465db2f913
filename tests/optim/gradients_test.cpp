// Gradients between backward and update: accumulated over micro-batches, reduced in buckets.
#include "optim/gradients.h"

#include <gtest/gtest.h>

#include "autograd/grad.h"
#include "models/spec_builder.h"
#include "ops/elementwise.h"
#include "ops/linear.h"
#include "ops/reduce.h"
#include "support/ranks.h"

namespace redco {
namespace {

using redco::testing::on_dp;
using redco::testing::on_mesh;
using redco::testing::on_mp;
using redco::testing::on_one_rank;
using redco::testing::place;

using Values = std::vector<std::vector<double>>;

ModelParams three_weights() {
  ModelParams params;
  SpecBuilder b(params);
  for (const char* name : {"a", "b", "c"}) b.linear(name, 2, 3, false, 1);
  return params;
}

// Gradients of the sum over linear(x, a + b) and linear(x, c), in `micro` micro-batches; those of a and b are
// one tensor. Reduced in buckets of `bucket` elements. `x` has the placement `layout`.
Values gradients(const Layout& layout, int micro, i64 bucket) {
  const ModelParams layer = three_weights();
  ParamTree params = make_params(layer, std::vector<Layout>(3));
  for (Tensor& t : params.values()) t = full(t.shape(), 1);
  std::vector<Tensor> acc;
  for (int m = 0; m < micro; ++m) {
    const ParamTree p = params.watched();
    const Tensor x = place({4, 3}, redco::testing::Random(m + 1).values(12), layout, DType::f32);
    const Tensor y = linear(x, p["a.weight"] + p["b.weight"]);
    accumulate(acc, grad(sum_all(y) + sum_all(square(linear(x, p["c.weight"]))), p.values()));
  }
  reduce_gradients(acc, params, {0, 1, 2}, bucket);
  Values out;
  for (const Tensor& t : acc) {
    EXPECT_EQ(t.layout(), Layout());
    out.push_back(to_values(t));
  }
  return out;
}

// Bucket sizes with all three gradients in one bucket, one in each, and a border between gradients that share
// storage.
TEST(Gradients, SharedStorageIsReducedOnce) {
  for (const int micro : {1, 2, 3}) {
    Values expected;
    on_one_rank([&](Context&) { expected = gradients({}, micro, kBucketElements); });
    for (const i64 bucket : {i64{1}, i64{6}, i64{12}, i64{18}, kBucketElements}) {
      const auto check = [&](const Layout& layout) {
        const Values got = gradients(layout, micro, bucket);
        for (size_t k = 0; k < 3; ++k)
          EXPECT_LT(redco::testing::distance(got[k], expected[k]), 1e-6)
              << "gradient " << k << ", " << micro << " micro-batches, buckets of " << bucket << ": "
              << redco::testing::show(got[k]) << ", on one rank " << redco::testing::show(expected[k]);
      };
      on_mesh({2, 1}, [&](Context&) { check(on_dp(Placement::sharded(0))); });
      on_mesh({1, 2}, [&](Context&) { check(on_mp(Placement::sharded(0))); });
      on_mesh({2, 2}, [&](Context&) {
        check(redco::testing::on_both(Placement::sharded(0), Placement::sharded(0)));
      });
    }
  }
}

TEST(Gradients, SharedStorageIsSentOnce) {
  on_mesh({2, 1}, [](Context& c) {
    const ModelParams layer = three_weights();
    const ParamTree params = make_params(layer, std::vector<Layout>(3));
    const Tensor g = place({2, 3}, {1, 2, 3, 4, 5, 6}, on_dp(Placement::partial()), DType::f32);
    std::vector<Tensor> grads = {g, g, g};
    c.keep_ledger();
    reduce_gradients(grads, params, {0, 1, 2}, 6);
    const auto lines = c.ledger()->collectives();
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].count, 1);
    EXPECT_EQ(lines[0].bytes, 6 * 4);
  });
}

// Other holders of the unreduced tensor keep its value.
TEST(Gradients, OtherHoldersKeepTheirValues) {
  on_mesh({2, 1}, [](Context&) {
    const ModelParams layer = three_weights();
    const ParamTree params = make_params(layer, std::vector<Layout>(3));
    const std::vector<double> values = {1, 2, 3, 4, 5, 6};
    const Tensor g = place({2, 3}, values, on_dp(Placement::partial()), DType::f32);
    std::vector<Tensor> grads = {g};
    reduce_gradients(grads, params, {0});
    EXPECT_LT(redco::testing::distance(to_values(grads[0]), values), 1e-6);
    EXPECT_LT(redco::testing::distance(to_values(g), values), 1e-6);

    const Tensor first = place({2, 3}, values, {}, DType::f32);
    std::vector<Tensor> acc;
    accumulate(acc, {first});
    accumulate(acc, {full({2, 3}, 1)});
    EXPECT_EQ(to_values(first), values);
  });
}

}  // namespace
}  // namespace redco

// Adafactor: the numbers of transformers, on every mesh and with sharded state.
#include "optim/adafactor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "models/spec_builder.h"
#include "optim/make_optimizer.h"
#include "support/ranks.h"

namespace redco {
namespace {

using redco::testing::on_mesh;

constexpr StateSharding kEveryStage[] = {StateSharding::none, StateSharding::optimizer,
                                         StateSharding::gradients, StateSharding::parameters};

// Smooth values that a Python program computes too.
std::vector<float> waves(i64 n, int k, double factor = 1) {
  std::vector<float> out;
  for (i64 i = 0; i < n; ++i)
    out.push_back(static_cast<float>(
        factor * static_cast<float>(std::sin(0.7 * static_cast<double>(i) + 1.3 * k) * (1 + 0.1 * (i % 5)))));
  return out;
}

// The parameters after ten updates, and the shapes of their state as "exp_avg_sq_row/NAME".
struct AfterTen {
  std::map<std::string, std::vector<double>> values;
  std::map<std::string, Shape> state;
};
AfterTen after_ten(const ModelParams& model, const AdafactorSettings& settings, const Mesh& mesh,
                   StateSharding sharding, bool from_waves) {
  const auto layouts = shard_specs(model.specs, mesh.mp()).layouts;
  AfterTen out;
  on_mesh(mesh, [&](Context& c) {
    ParamTree params = make_params(model, layouts, {.sharding = sharding, .trains = true});
    initialize(params, 1);
    for (std::size_t i = 0; from_waves && i < params.size(); ++i) {
      Tensor& p = params.values()[i];
      p = from_values(p.shape(), std::span<const float>(waves(p.numel(), static_cast<int>(i))), p.layout());
    }
    const auto optimizer = make_optimizer(settings, params, sharding);
    for (int step = 0; step < 10; ++step) {
      std::vector<Tensor> grads;
      for (std::size_t i = 0; i < params.size(); ++i) {
        const Tensor& p = params.values()[i];
        const auto g = waves(p.numel(), 10 * step + 3 + static_cast<int>(i), 0.2 + 0.1 * step);
        grads.push_back(from_values(p.shape(), std::span<const float>(g), state_layout(p, sharding)));
      }
      optimizer->update(params, grads, 0.05, 1);
    }
    AfterTen mine;
    for (std::size_t i = 0; i < params.size(); ++i)
      mine.values[params.specs()[i].name] = to_values(params.values()[i]);
    for (const Optimizer::State& s : optimizer->state())
      for (std::size_t i = 0; i < s.tree.size(); ++i) {
        mine.state[s.name + "/" + s.tree.specs()[i].name] = s.tree.values()[i].shape();
        EXPECT_EQ(s.tree.specs()[i].stored.shape, s.tree.values()[i].shape());
      }
    if (c.world().rank() == 0) out = mine;
  });
  return out;
}

// transformers.Adafactor 5.24 with PyTorch 2.15: lr=0.05, relative_step=False, weight_decay=0.1.
TEST(Adafactor, EqualsTransformers) {
  const std::vector<double> expected[2][2] = {
      {{0.080822483, 0.54873866, 0.82909483, 0.72953403, 0.27743968, -0.29640791, -0.73473215, -0.88128293,
        -0.58028251, 0.084580772, 0.55533528, 0.88405055},
       {0.69480979, 0.69653338, 0.30682933, -0.30028975, -0.92225039}},
      {{0.096494809, 0.61077523, 0.91247904, 0.79060572, 0.2808516, -0.33603993, -0.80260938, -0.94223624,
        -0.60810614, 0.10968469, 0.60355598, 0.94016647},
       {0.75586396, 0.73715442, 0.30998605, -0.3415111, -0.98564887}}};
  ModelParams model;
  SpecBuilder b(model);
  b.linear("matrix", 3, 4, false, 1);
  b.add("vector", {5}, ParamKind::other, {});
  for (const bool scaled : {false, true}) {
    const AfterTen got =
        after_ten(model, {.scale_parameter = scaled, .weight_decay = 0.1, .decay_norms_and_biases = true},
                  {1, 1}, StateSharding::none, true);
    for (int k = 0; k < 2; ++k) {
      const std::vector<double>& mine = got.values.at(k == 0 ? "matrix.weight" : "vector");
      ASSERT_EQ(mine.size(), expected[scaled][k].size());
      // Ten updates of at most 0.05 with a few roundings of 6e-8, and those of values near 1.
      for (std::size_t i = 0; i < mine.size(); ++i)
        EXPECT_NEAR(mine[i], expected[scaled][k][i], 2e-6) << scaled << " " << k << " " << i;
    }
    EXPECT_EQ(got.state, (std::map<std::string, Shape>{{"exp_avg_sq_row/matrix.weight", {3, 1}},
                                                       {"exp_avg_sq_col/matrix.weight", {1, 4}},
                                                       {"exp_avg_sq/vector", {5}}}));
  }
}

TEST(Adafactor, IsTheSameOnEveryMesh) {
  ModelParams model;
  SpecBuilder b(model);
  b.embedding("embed", 24, 8, 1);
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
    b.linear(std::string("layers.0.attn.") + name, 8, 8, true, 1);
  b.linear("layers.0.mlp.up_proj", 20, 8, true, 1);
  b.linear("layers.0.mlp.down_proj", 8, 20, true, 1);
  b.experts({.prefix = "layers.1.mlp.experts", .layer = "up", .count = 3, .out = 6, .in = 10}, 1, "", 0, 0);
  b.norm("norm", 8, true);
  b.add("scalar", {1}, ParamKind::other, {Init::Kind::ones});
  const AdafactorSettings settings{.scale_parameter = true, .weight_decay = 0.1};
  const AfterTen one = after_ten(model, settings, {1, 1}, StateSharding::none, false);
  const auto of_experts = std::ranges::find_if(
      one.state, [](const auto& s) { return s.first.starts_with("exp_avg_sq_row/layers.1.mlp.experts"); });
  ASSERT_NE(of_experts, one.state.end());
  EXPECT_EQ(of_experts->second, (Shape{3, 6, 1}));
  for (const Mesh& mesh : {Mesh{2, 1}, Mesh{1, 2}, Mesh{2, 2}, Mesh{3, 1}, Mesh{1, 3}, Mesh{5, 1}})
    for (const StateSharding sharding : kEveryStage) {
      const AfterTen other = after_ten(model, settings, mesh, sharding, false);
      EXPECT_EQ(other.state, one.state);
      for (const auto& [name, values] : one.values)
        for (std::size_t i = 0; i < values.size(); ++i)
          ASSERT_NEAR(other.values.at(name)[i], values[i], 5e-6)
              << mesh.dp() << "x" << mesh.mp() << " " << name_of(sharding) << " " << name << " " << i;
    }
}

}  // namespace
}  // namespace redco

// SGD against PyTorch (scripts/make_optimizer_fixtures.py), and the optimizer's memory in a plan.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "models/spec_builder.h"
#include "optim/adamw.h"
#include "optim/clip.h"
#include "optim/gradients.h"
#include "optim/sgd.h"
#include "support/ranks.h"
#include "train/step.h"

namespace redco {
namespace {

using redco::testing::on_mesh;
using Rows = std::vector<std::vector<double>>;

ModelParams one_layer() {
  ModelParams params;
  SpecBuilder b(params);
  b.linear("net.fc1", 4, 3, true, 1);
  return params;
}

Tensor placed(const ParamSpec& spec, const std::vector<double>& values, const Layout& layout) {
  const std::vector<float> v(values.begin(), values.end());
  return from_values(spec.shape, std::span<const float>(v), layout);
}

TEST(Optimizers, SgdEqualsPyTorch) {
  std::ifstream in(std::string(REDCO_FIXTURES) + "/optim/sgd.json");
  const nlohmann::json cases = nlohmann::json::parse(in)["cases"];
  ASSERT_EQ(cases.size(), 5u);
  const ModelParams layer = one_layer();
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{1, 2}})
    on_mesh(mesh, [&](Context&) {
      for (const auto& c : cases) {
        const auto layouts = shard_specs(layer.specs, mesh.mp()).layouts;
        ParamTree params = make_params(layer, layouts);
        const auto set = [&](std::vector<Tensor>& to, const Rows& from) {
          for (size_t i = 0; i < to.size(); ++i) to[i] = placed(layer.specs[i], from[i], layouts[i]);
        };
        set(params.values(), c["start"].get<Rows>());
        Sgd sgd({.momentum = c["momentum"], .weight_decay = c["weight_decay"]}, params);
        EXPECT_EQ(sgd.state().empty(), c["momentum"] == 0);
        for (const auto& step : c["steps"]) {
          // Clipping scales gradients as for AdamW: here doubled gradients by one half.
          Rows gradients = step["gradients"].get<Rows>();
          for (auto& g : gradients)
            for (double& x : g) x *= 2;
          std::vector<Tensor> g(2);
          set(g, gradients);
          sgd.update(params, g, step["learning_rate"], 0.5);
          const auto equal = [&](const std::vector<Tensor>& got, const Rows& wanted) {
            for (size_t i = 0; i < got.size(); ++i) {
              const std::vector<double> v = to_values(got[i]);
              // fp32, four updates of numbers of size 1 to 3, with terms rounded in another order.
              for (size_t k = 0; k < v.size(); ++k) EXPECT_NEAR(v[k], wanted[i][k], 2e-6) << c["momentum"];
            }
          };
          equal(params.values(), step["parameters"].get<Rows>());
          for (const Optimizer::State& s : sgd.state()) {
            EXPECT_EQ(s.name, "momentum_buffer");
            equal(s.tree.values(), step[s.name].get<Rows>());
          }
        }
        EXPECT_EQ(sgd.updates(), (std::vector<i64>{4, 4}));
      }
    });
}

TEST(Optimizers, NormsAndBiasesDecayIfSet) {
  redco::testing::on_one_rank([](Context&) {
    const ModelParams layer = one_layer();
    ParamTree params = make_params(layer, {{}, {}});
    for (const bool all : {false, true}) {
      for (Tensor& t : params.values()) t = full(t.shape(), 1);
      Sgd sgd({.weight_decay = 0.5, .decay_norms_and_biases = all}, params);
      sgd.update(params, {zeros({4, 3}), zeros({4})}, 1, 1);
      EXPECT_EQ(to_values(params.values()[0])[0], 0.5);
      EXPECT_EQ(to_values(params.values()[1])[0], all ? 0.5 : 1.0);
    }
  });
}

TEST(Optimizers, ParametersWithEqualSettingsAreOneCall) {
  redco::testing::on_one_rank([](Context& c) {
    const ModelParams layer = one_layer();
    ParamTree params = make_params(layer, {{}, {}});
    const std::vector<Tensor> grads = {full({4, 3}, 1), full({4}, 1)};
    const auto calls = [&](const auto& f) {
      const i64 before = c.queue().submitted();
      f();
      return c.queue().submitted() - before;
    };
    EXPECT_EQ(calls([&] { EXPECT_EQ(gradient_norm(grads), 4); }), 1);
    Sgd decays({.weight_decay = 0.5}, params), plain({}, params);
    EXPECT_EQ(calls([&] { decays.update(params, grads, 1, 1); }), 2);  // no decay of the bias
    EXPECT_EQ(calls([&] { plain.update(params, grads, 1, 1); }), 1);
    // The bias corrections depend on the number of updates.
    AdamW adamw({.weight_decay = 0}, params), twin({.weight_decay = 0}, params);
    EXPECT_EQ(calls([&] { adamw.update(params, grads, 0, 1); }), 1);
    adamw.updates()[1] = 0;
    for (Tensor& t : params.values()) t = full(t.shape(), 1);
    EXPECT_EQ(calls([&] { adamw.update(params, grads, 1e-2, 1); }), 2);
    const std::vector<double> bias = to_values(params.values()[1]);
    params.values()[1] = full({4}, 1);
    // The second parameter's first update with state of one update before.
    twin.update(params, grads, 0, 1);
    twin.updates() = {0, 0};
    twin.update(params, grads, 1e-2, 1);
    EXPECT_EQ(to_values(params.values()[1]), bias);
  });
}

TEST(Optimizers, SettingsSelectTheOptimizer) {
  TrainSettings t;
  EXPECT_EQ(states_of(step_options(t).optimizer), 2);
  t.optimizer = "sgd";
  EXPECT_EQ(states_of(step_options(t).optimizer), 0);
  t.momentum = 0.9;
  EXPECT_EQ(states_of(step_options(t).optimizer), 1);
}

}  // namespace
}  // namespace redco

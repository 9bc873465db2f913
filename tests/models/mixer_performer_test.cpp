// MLP-Mixer and Performer: the automatic sharding rules, and random features.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/model_testing.h"

namespace redco::testing {
namespace {

// Parameter -> the dim sharded over two shards; -1: replicated.
std::map<std::string, int> cuts(const Model& model) {
  std::map<std::string, int> out;
  const ShardedSpecs sharded = shard_specs(model.params().specs, 2);
  for (size_t i = 0; i < sharded.layouts.size(); ++i)
    out[model.params().specs[i].name] = sharded.sharding.rules[i].dim;
  return out;
}

// Both MLPs of a block: the first layer is column-parallel, the second row-parallel.
TEST(Mixer, IsShardedByTheRules) {
  const auto dims = cuts(*load_model(fixture("mlp-mixer")));
  for (const char* block : {"blocks.0.", "blocks.1."})
    for (const char* mlp : {"mlp_tokens", "mlp_channels"}) {
      const std::string name = std::string(block) + mlp;
      EXPECT_EQ(dims.at(name + ".fc1.weight"), 0) << name;
      EXPECT_EQ(dims.at(name + ".fc1.bias"), 0) << name;
      EXPECT_EQ(dims.at(name + ".fc2.weight"), 1) << name;
      EXPECT_EQ(dims.at(name + ".fc2.bias"), -1) << name;
    }
  EXPECT_EQ(dims.at("blocks.0.norm1.weight"), -1);
}

// q, k and v are sharded by heads, the output projection is row-parallel; random features are replicated.
TEST(Performer, IsShardedByTheRules) {
  const auto dims = cuts(*load_model(fixture("performer")));
  for (const char* layer : {"performer.encoder.layer.0.", "performer.encoder.layer.1."}) {
    const std::string at = layer;
    for (const char* name : {"query", "key", "value"})
      EXPECT_EQ(dims.at(at + "attention." + name + ".weight"), 0);
    EXPECT_EQ(dims.at(at + "attention.output.weight"), 1);
    EXPECT_EQ(dims.at(at + "attention.random_features"), -1);
    EXPECT_EQ(dims.at(at + "mlp.fc1.weight"), 0);
    EXPECT_EQ(dims.at(at + "mlp.fc2.weight"), 1);
  }
}

// Random features: orthogonal in groups of D, with the lengths of normal vectors, the same on every mesh.
TEST(Performer, DrawsOrthogonalFeatures) {
  const i64 D = 8, M = 24;
  ModelParams params;
  params.specs.push_back({.name = "w",
                          .shape = {M * D},
                          .stored = {"w", {M * D}},
                          .init = {.kind = Init::Kind::orthogonal, .width = D},
                          .buffer = true});
  std::map<int, std::vector<double>> drawn;
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 2}})
    run_threads(mesh.ranks(), [&](Group& world) {
      Context context(mesh, world.split(0), testing::test_queue());
      Context::Use use(context);
      ParamTree tree = make_params(params, shard_specs(params.specs, mesh.mp()).layouts);
      initialize(tree, 7);
      const std::vector<double> values = to_values(tree.values()[0]);
      if (world.rank() == 0) drawn[mesh.ranks()] = values;
    });
  EXPECT_EQ(drawn[1], drawn[4]);
  const std::vector<double>& w = drawn[1];
  double lengths = 0;
  for (i64 a = 0; a < M; ++a)
    for (i64 b = a / D * D; b <= a; ++b) {
      double dot = 0;
      for (i64 i = 0; i < D; ++i) dot += w[a * D + i] * w[b * D + i];
      if (a == b)
        lengths += dot;
      else
        EXPECT_NEAR(dot, 0, 1e-5);  // fp32 rounding of vectors about sqrt(8) long
    }
  // The mean of M chi-squares with D degrees has a standard deviation of sqrt(2 D / M) = 0.8: within 4 of it.
  EXPECT_NEAR(lengths / M, D, 3.3);
}

// The mean over features of exp(w q - |q|^2 / 2) exp(w k - |k|^2 / 2) is exp(q k) (Choromanski et al. 2021,
// lemma 1). One feature's square has the mean exp(|q + k|^2 + 2 q k): M independent ones would be off by
// sqrt((exp(|q + k|^2) - 1) / M) exp(q k) = 0.017 exp(q k) here; orthogonal ones are off by less. Within 5 of
// it.
TEST(Performer, FeaturesEstimateTheExponential) {
  const i64 D = 8, M = 8192;
  ModelParams params;
  params.specs.push_back({.name = "w",
                          .shape = {M * D},
                          .stored = {"w", {M * D}},
                          .init = {.kind = Init::Kind::orthogonal, .width = D},
                          .buffer = true});
  run_threads(1, [&](Group& world) {
    Context context({1, 1}, world.split(0), testing::test_queue());
    Context::Use use(context);
    ParamTree tree = make_params(params, shard_specs(params.specs, 1).layouts);
    initialize(tree, 3);
    const std::vector<double> w = to_values(tree.values()[0]);
    for (const double angle : {0.0, 1.0, 3.0}) {
      const double q[] = {0.5, 0}, k[] = {0.5 * std::cos(angle), 0.5 * std::sin(angle)};
      double sum = 0;
      for (i64 m = 0; m < M; ++m)
        sum += std::exp(w[m * D] * (q[0] + k[0]) + w[m * D + 1] * (q[1] + k[1]) - 0.25);
      const double exact = std::exp(q[0] * k[0] + q[1] * k[1]);
      EXPECT_NEAR(sum / M, exact, 0.085 * exact) << angle;
    }
  });
}

}  // namespace
}  // namespace redco::testing

// Options of a pass: attention that differs from the family's, and activations by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/model_testing.h"
#include "nn/activations_by_name.h"
#include "nn/attention_bias.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/shape.h"
#include "support/error_text.h"
#include "support/ranks.h"

namespace redco::testing {
namespace {

const Mesh kPassMeshes[] = {{1, 1}, {1, 2}, {2, 1}, {2, 2}};

// A fixture's model and inputs on one rank of a mesh.
struct Passed {
  std::unique_ptr<Model> model;
  ParamTree params;
  TaskInputs in;
  explicit Passed(const std::string& name) : model(load_model(fixture(name))) {
    const auto sharded = shard_specs(model->params().specs, Context::current().mesh().mp());
    params = detail::load_tree(*model, sharded, ckpt::ModelFiles::open(fixture(name))).watched();
    in = read_task_inputs(*model, Expected::open(fixture(name), ""));
  }
  Tensor logits(const ApplyOptions& o = {}) const { return task_logits(*model, params, in, o); }
};

void expect_near(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  double largest = 1e-3;
  for (const double x : b) largest = std::max(largest, std::abs(x));
  EXPECT_LT(distance(a, b), tolerance * largest);
}

class DecoderPass : public ::testing::TestWithParam<const char*> {};

// Masks that equal the causal mask, and masks without hidden keys.
TEST_P(DecoderPass, MasksAreBiases) {
  on_mesh({1, 2}, [](Context&) {
    const Passed m(GetParam());
    const i64 B = m.in.decoder.input_ids.size(0), T = m.in.decoder.input_ids.size(1);
    const auto with = [&](const Tensor& bias) {
      return to_values(m.logits({.causal = false, .attention_bias = bias}));
    };
    const auto causal = to_values(m.logits()), open = to_values(m.logits({.causal = false}));
    EXPECT_GT(distance(causal, open), 1e-4);
    const auto prefix = [&](i32 n) { return prefix_bias(from_ids({B}, std::vector<i32>(B, n)), T); };
    expect_near(with(prefix(0)), causal, 1e-5);
    expect_near(with(block_bias(T, 1)), causal, 1e-5);
    expect_near(with(prefix(static_cast<i32>(T))), open, 1e-5);
    expect_near(with(block_bias(T, T)), open, 1e-5);
    // The first two of three tokens see each other.
    EXPECT_GT(distance(with(prefix(2)), causal), 1e-5);
  });
}

// The same logits and gradients, those of a learned bias too, on every mesh and with recomputed blocks.
TEST_P(DecoderPass, BiasesAreLearned) {
  std::vector<double> expected[3];
  for (const Mesh& mesh : kPassMeshes)
    for (const bool recompute : {false, true}) {
      SCOPED_TRACE(fmt::format("{} x {}, recompute {}", mesh.dp(), mesh.mp(), recompute));
      on_mesh(mesh, [&](Context& c) {
        const Passed m(GetParam());
        const i64 T = m.in.decoder.input_ids.size(1);
        const std::vector<double> v = Random(3).values(T * T);
        const std::vector<float> values(v.begin(), v.end());
        const Tensor bias = from_values({1, 1, T, T}, std::span<const float>(values)).watched();
        const Tensor logits =
            m.logits({.recompute_blocks = recompute, .causal = false, .attention_bias = bias});
        std::vector<Tensor> wanted = {bias, m.params.values()[0]};
        const std::vector<Tensor> g = grad(sum_all(square(logits)), wanted);
        const std::vector<double> got[3] = {to_values(logits), to_values(g[0]), to_values(g[1])};
        if (c.rank() != 0) return;
        for (int i = 0; i < 3; ++i) {
          if (expected[i].empty()) expected[i] = got[i];
          expect_near(got[i], expected[i], 2e-5);
        }
      });
    }
}
INSTANTIATE_TEST_SUITE_P(Families, DecoderPass, ::testing::Values("gpt2", "llama", "falcon", "deepseek_v3"),
                         [](const auto& info) { return std::string(info.param); });

class NamedActivations : public ::testing::TestWithParam<const char*> {};

// Captured streams are transformers' hidden states; the parts of a layer are there too.
TEST_P(NamedActivations, AreTheHiddenStates) {
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 2}})
    on_mesh(mesh, [&](Context&) {
      const Passed m(GetParam());
      std::vector<Tensor> states;
      const auto before = to_values(m.logits({.hidden_states = &states}));
      const auto all = std::make_shared<Activations>(
          std::vector<std::string>{"embedding", "layers.0", "layers.0.attention", "layers.0.mlp",
                                   "final_norm"},
          std::map<std::string, Activations::Replacement>{
              {"layers.0.mlp", [](const Tensor& x) { return x; }}});
      const auto after = to_values(m.logits({.recompute_blocks = true, .activations = all}));
      EXPECT_EQ(before, after);
      // Of an encoder-decoder model these are the decoder's, which come last.
      const auto decoder = static_cast<std::size_t>(m.model->n_layers()) + 1;
      const std::size_t first = m.model->is_encoder_decoder() ? states.size() - decoder : 0;
      expect_near(to_values((*all)["embedding"]), to_values(states[first]), 1e-6);
      expect_near(to_values((*all)["layers.0"]), to_values(states[first + 1]), 1e-6);
      EXPECT_EQ((*all)["layers.0.mlp"].shape(), (*all)["embedding"].shape());
    });
}

// Steering: a vector that is added to the stream, and its gradient, on every mesh.
TEST_P(NamedActivations, AreReplacedOnTheTape) {
  std::vector<double> expected[2];
  for (const Mesh& mesh : kPassMeshes)
    on_mesh(mesh, [&](Context& c) {
      const Passed m(GetParam());
      const Tensor direction = full({1}, 0.5).watched();
      const auto steered = std::make_shared<Activations>(
          std::vector<std::string>{"layers.0"},
          std::map<std::string, Activations::Replacement>{
              {"layers.0.attention", [&](const Tensor& x) { return x * direction; }}});
      const Tensor logits = m.logits({.activations = steered});
      const Tensor loss = sum_all(square(logits)) + sum_all(square((*steered)["layers.0"]));
      const std::vector<double> got[2] = {to_values(logits), to_values(grad(loss, {direction})[0])};
      EXPECT_GT(std::abs(got[1][0]), 0);
      if (c.rank() != 0) return;
      for (int i = 0; i < 2; ++i) {
        if (expected[i].empty()) expected[i] = got[i];
        expect_near(got[i], expected[i], 2e-5);
      }
    });
}
INSTANTIATE_TEST_SUITE_P(Families, NamedActivations,
                         ::testing::Values("gpt2", "llama", "gptj", "bert-mlm", "bart", "t5"),
                         [](const auto& info) {
                           std::string text = info.param;
                           std::replace(text.begin(), text.end(), '-', '_');
                           return text;
                         });

TEST(PassOptions, WhatAFamilyLacksIsAnError) {
  on_one_rank([](Context&) {
    const Passed gpt2("gpt2"), mamba("mamba2");
    const auto asked = std::make_shared<Activations>(std::vector<std::string>{"layers.7.mlp"});
    EXPECT_THAT(
        error_text<UsageError>([&] { gpt2.logits({.activations = asked}); }),
        ::testing::HasSubstr("has no activation 'layers.7.mlp'; it has: embedding, layers.0.attention"));
    EXPECT_THAT(error_text<UsageError>([&] { (*asked)["layers.0"]; }),
                ::testing::HasSubstr("is not captured"));
    EXPECT_THAT(error_text<UsageError>([&] { mamba.logits({.causal = false}); }),
                ::testing::HasSubstr("omit causal and attention_bias"));
  });
}

}  // namespace
}  // namespace redco::testing

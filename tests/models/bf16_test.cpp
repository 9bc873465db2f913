// Models that compute in bf16, against the same models in fp32.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/model_testing.h"
#include "support/ranks.h"

namespace redco::testing {
namespace {

// |a - b| / |b|
double relative_distance(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  return std::sqrt(difference / std::max(size, 1e-300));
}

class ComputesInBf16 : public ::testing::TestWithParam<const char*> {};

// One rounding has a relative error of 2^-9, and those of all layers add up: to 1 % of the logits of most of
// these models, and 3 % where two stacks follow each other. Gradients have larger errors: activations near
// zero change their sign, and with it the slope of a ReLU (0.4 % of them: an error of 9 %).
TEST_P(ComputesInBf16, UpToRounding) {
  const std::string folder = fixture(GetParam());
  const Results wide = run_model(folder, {1, 1});
  const bool takes_bf16 = test_queue()->kernels().takes_bf16;
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{1, 2}, Mesh{2, 1}, Mesh{2, 2}, Mesh{1, 3}}) {
    const Results got = run_model(folder, mesh, {.compute = ComputeDType::bf16});
    const std::string what = fmt::format("dp {} x mp {}", mesh.dp(), mesh.mp());
    ASSERT_EQ(got.size(), wide.size());
    EXPECT_LT(relative_distance(got.at("logits"), wide.at("logits")), 0.04) << what;
    // Devices may leave it out.
    EXPECT_EQ(relative_distance(got.at("logits"), wide.at("logits")) > 1e-5, takes_bf16) << what;
    EXPECT_LT(relative_distance(got.at("loss"), wide.at("loss")), 0.005) << what;
    std::vector<double> all, all_wide;
    for (const auto& [name, values] : wide) {
      if (!name.starts_with("grad.")) continue;
      all_wide.insert(all_wide.end(), values.begin(), values.end());
      all.insert(all.end(), got.at(name).begin(), got.at(name).end());
    }
    EXPECT_LT(relative_distance(all, all_wide), 0.12) << what;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, ComputesInBf16,
                         ::testing::Values("gpt2", "gptj", "opt", "opt-postnorm", "llama", "qwen3", "gemma2",
                                           "mixtral", "t5-v1_1", "bart", "bert-seqcls", "bert-mlm", "vit",
                                           "whisper", "vit-gpt2", "performer", "mlp-mixer", "mlp",
                                           "mistral-window", "mamba2", "dit", "granitemoehybrid",
                                           "nemotron_h", "qwen3_next", "bloom", "cohere2", "deepseek_v3",
                                           "falcon_h1", "lfm2", "mamba"),
                         [](const auto& info) {
                           std::string text = info.param;
                           std::replace(text.begin(), text.end(), '-', '_');
                           return text;
                         });

}  // namespace
}  // namespace redco::testing

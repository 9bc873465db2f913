// The four families against PyTorch: hidden states, logits, loss and every gradient, on every mesh.
#include "models/model_testing.h"

namespace redco::testing {
namespace {

constexpr Mesh kMeshes[] = {{1, 1}, {1, 2}, {2, 1}, {2, 2}, {1, 3}};

class Fixtures : public ::testing::TestWithParam<std::tuple<const char*, Mesh>> {};

TEST_P(Fixtures, ForwardAndGradients) {
  const auto& [name, mesh] = GetParam();
  expect_matches(fixture(name), run_model(fixture(name), mesh));
}

std::string param_name(const ::testing::TestParamInfo<Fixtures::ParamType>& info) {
  const auto& [name, mesh] = info.param;
  std::string text = fmt::format("{}_{}x{}", name, mesh.dp, mesh.mp);
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

INSTANTIATE_TEST_SUITE_P(Families, Fixtures,
                         ::testing::Combine(::testing::Values("gpt2", "gptj", "opt", "llama"),
                                            ::testing::ValuesIn(kMeshes)),
                         param_name);

// Settings that those don't have (scripts/make_model_fixtures.py); three heads, so that 1x2 is uneven.
INSTANTIATE_TEST_SUITE_P(Variants, Fixtures,
                         ::testing::Combine(::testing::Values("gpt2-variants", "gpt2-upcast", "gptj-tied",
                                                              "opt-postnorm", "opt-nobias", "llama-tied-bias",
                                                              "llama-rope-linear", "llama-rope-llama3",
                                                              "llama-rope-yarn", "mistral-window",
                                                              "qwen2-window"),
                                            ::testing::ValuesIn(kMeshes)),
                         param_name);

}  // namespace
}  // namespace redco::testing

// Which parameters have weight decay.
#include <gtest/gtest.h>

#include <set>

#include "models/model.h"
#include "optim/optimizer.h"

namespace redco {
namespace {

TEST(Decay, NormsAndBiasesHaveNoneUnlessAskedFor) {
  for (const auto& [kind, small] :
       {std::pair{ParamKind::norm, true}, {ParamKind::bias, true}, {ParamKind::linear, false}}) {
    EXPECT_EQ(decay_of({.kind = kind}, 0.1, false), small ? 0 : 0.1);
    EXPECT_EQ(decay_of({.kind = kind}, 0.1, true), 0.1);
  }
}

// mamba_ssm marks these three with _no_weight_decay; PyTorch's AdamW(model.parameters()) ignores the marks,
// and decay_norms_and_biases=true does what it does.
TEST(Decay, Mamba2sScalarsOfHeadsHaveNoneUnlessAskedFor) {
  const auto model = make_model(ModelConfig(
      R"({"model_type": "mamba2", "hidden_size": 32, "num_heads": 8, "head_dim": 8, "n_groups": 2,
          "state_size": 12, "num_hidden_layers": 1, "vocab_size": 64})",
      "test"));
  std::set<std::string> none;
  for (const ParamSpec& s : model->params().specs) {
    EXPECT_EQ(decay_of(s, 0.1, true), 0.1) << s.name;
    if (s.kind == ParamKind::other && decay_of(s, 0.1, false) == 0)
      none.insert(s.name.substr(s.name.rfind('.') + 1));
  }
  EXPECT_EQ(none, (std::set<std::string>{"A_log", "D", "dt_bias"}));
}

}  // namespace
}  // namespace redco

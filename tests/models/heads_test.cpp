// Heads for tokens, spans, choices and classes, of encoders and decoders, against transformers
// (scripts/make_head_fixtures.py): logits and gradients, on every mesh.
#include <gtest/gtest.h>

#include "models/model_testing.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "support/ranks.h"
#include "support/tensor_file.h"

namespace redco::testing {
namespace {

struct HeadCase {
  const char* folder;
  ModelTask task;
};

void PrintTo(const HeadCase& c, std::ostream* out) { *out << c.folder; }

class Heads : public ::testing::TestWithParam<HeadCase> {};

TEST_P(Heads, LogitsAndGradients) {
  const std::string folder = fixture("heads/") + GetParam().folder;
  const test::EditedTensors expected(folder + "/expected.safetensors");
  const auto shape = expected.shape("input_ids");
  const auto as_i32 = [&](const std::string& name) {
    const auto v = expected.values<i64>(name);
    return std::vector<i32>(v.begin(), v.end());
  };
  const std::unique_ptr<Model> model = load_model(folder);
  ASSERT_EQ(model->task(), GetParam().task);
  const ckpt::ModelFiles files = ckpt::ModelFiles::open(folder);
  const std::vector<float> wanted = expected.values<float>("logits");
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{1, 3}, Mesh{2, 2}})
    on_mesh(mesh, [&](Context&) {
      const ShardedSpecs sharded = shard_specs(model->params().specs, mesh.mp());
      const ParamTree params = detail::load_tree(*model, sharded, files).watched();
      const EncoderInputs in{
          .input_ids = from_ids({shape[0], shape[1]}, as_i32("input_ids"), batch_layout()),
          .key_mask = from_ids({shape[0], shape[1]}, as_i32("attention_mask"), batch_layout())};
      const Tensor logits = model->apply_encoder(params, in, {});
      const std::vector<double> got = to_values(logits);
      ASSERT_EQ(got.size(), wanted.size());
      const std::vector<i32> mask = as_i32("attention_mask");
      const size_t each = wanted.size() / (logits.rank() == 3 ? mask.size() : wanted.size());
      std::vector<float> weights;
      for (size_t i = 0; i < got.size(); ++i) {
        const bool real = logits.rank() < 3 || mask[i / each] != 0;
        if (real) ASSERT_NEAR(got[i], wanted[i], 2e-5) << i;
        weights.push_back(real ? std::sin(static_cast<float>(i)) : 0);
      }
      const Tensor loss = sum_all(logits * from_values(logits.shape(), weights, batch_layout()));
      int compared = 0;
      for (size_t k = 0; k < params.size(); ++k) {
        const ParamSpec& s = params.specs()[k];
        std::string name = "grad." + s.stored.name;
        if (!expected.has(name)) name = "grad." + s.stored.name.substr(s.stored.name.find('.') + 1);
        if (!expected.has(name) || s.stored.transposed || s.stored.tensors() != 1 ||
            numel(s.shape) != numel(s.stored.shape))
          continue;
        const std::vector<double> g = to_values(grad(loss, {params.values()[k]}, {.retain = true})[0]);
        const std::vector<float> theirs = expected.values<float>(name);
        ASSERT_EQ(g.size(), theirs.size()) << name;
        for (size_t i = 0; i < g.size(); ++i) ASSERT_NEAR(g[i], theirs[i], 2e-4) << name << " " << i;
        ++compared;
      }
      EXPECT_GT(compared, 2);
    });
}

constexpr ModelTask kTags = ModelTask::token_classification, kSpans = ModelTask::question_answering,
                    kChoices = ModelTask::multiple_choice, kClasses = ModelTask::sequence_classification;

INSTANTIATE_TEST_SUITE_P(
    Families, Heads,
    ::testing::Values(
        HeadCase{"berttokenclassification", kTags}, HeadCase{"robertatokenclassification", kTags},
        HeadCase{"distilberttokenclassification", kTags}, HeadCase{"modernberttokenclassification", kTags},
        HeadCase{"alberttokenclassification", kTags}, HeadCase{"electratokenclassification", kTags},
        HeadCase{"mpnettokenclassification", kTags}, HeadCase{"debertav2tokenclassification", kTags},
        HeadCase{"bertquestionanswering", kSpans}, HeadCase{"robertaquestionanswering", kSpans},
        HeadCase{"distilbertquestionanswering", kSpans}, HeadCase{"modernbertquestionanswering", kSpans},
        HeadCase{"albertquestionanswering", kSpans}, HeadCase{"electraquestionanswering", kSpans},
        HeadCase{"mpnetquestionanswering", kSpans}, HeadCase{"debertav2questionanswering", kSpans},
        HeadCase{"bertmultiplechoice", kChoices}, HeadCase{"robertamultiplechoice", kChoices},
        HeadCase{"distilbertmultiplechoice", kChoices}, HeadCase{"mpnetmultiplechoice", kChoices},
        HeadCase{"modernbertmultiplechoice", kChoices}, HeadCase{"llamasequenceclassification", kClasses},
        HeadCase{"qwen2sequenceclassification", kClasses}, HeadCase{"optsequenceclassification", kClasses},
        HeadCase{"gpt2sequenceclassification", kClasses}, HeadCase{"llamatokenclassification", kTags},
        HeadCase{"gpt2tokenclassification", kTags}),
    [](const auto& info) { return std::string(info.param.folder); });

}  // namespace
}  // namespace redco::testing

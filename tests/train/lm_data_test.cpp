// Texts and examples in pipeline lm: attention in a row and the loss mask on every mesh.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "ckpt/params_io.h"
#include "pipeline/lm_dataset.h"
#include "pipelines/pipelines.h"
#include "support/ranks.h"
#include "support/temp_dir.h"
#include "train/evaluate.h"
#include "train/prefetch.h"
#include "train/trainer.h"

namespace redco {
namespace {

using namespace redco::testing;
using test::slurp;
using test::spill;

const std::string kFixtures = REDCO_FIXTURES;

std::unique_ptr<Model> fixture_model(const std::string& name) {
  const std::string path = kFixtures + "/" + name + "/config.json";
  return make_model(ModelConfig(slurp(path), path));
}

ParamTree fixture_params(const Model& model, const std::string& name) {
  const ModelParams& p = model.params();
  ParamTree tree = make_params(p, shard_specs(p.specs, Context::current().mesh().mp(), {}).layouts);
  ckpt::load_params(
      tree, ckpt::ModelFiles::open(kFixtures + "/" + name),
      [&](const std::string& n) { return model.canonical_name(n); }, p.aliases);
  return tree;
}

class LmData : public ::testing::Test {
 protected:
  std::string cache() const { return dir_ / "cache"; }
  // Rows of JSONL lines.
  std::shared_ptr<ExampleDataset> examples(const std::string& lines, const RowSettings& s, bool segmented,
                                           const Tokenizer& t, bool references = false) const {
    spill(dir_ / "a.jsonl", lines);
    const std::string path =
        build_example_index({.paths = {dir_ / "a.jsonl"}, .references = references}, t, cache());
    ExampleIndex index = ExampleIndex::open(path);
    ExampleRows rows = ExampleRows::open(build_rows(index, s));
    return std::make_shared<ExampleDataset>(std::move(index), std::move(rows), s, segmented);
  }
  std::shared_ptr<WindowDataset> windows(const std::string& text, i64 length, const Tokenizer& t,
                                         Documents documents = Documents::file,
                                         bool segmented = false) const {
    spill(dir_ / "a.txt", text);
    // Without a bos token, which the fixtures' documents do not have.
    const std::string path = build_token_index({{dir_ / "a.txt"}, documents, false}, t, cache());
    return std::make_shared<WindowDataset>(TokenIndex::open(path), length, segmented);
  }
  test::TempDir dir_{test::TempDir::in_memory};
  std::unique_ptr<Tokenizer> bytes_ = load_tokenizer("bytes");
};

// Pipeline lm with a fixture's model, on the current context.
struct Lm {
  explicit Lm(const std::string& name, bool segmented)
      : model(fixture_model(name)), pipeline(make_lm_pipeline()) {
    pipeline->model = model.get();
    auto settings = std::make_shared<PipelineSettings>();
    settings->data.attention_across = !segmented;
    pipeline->settings = settings;
    params.emplace(fixture_params(*model, name));
  }
  Batch batch(const Dataset& data, i64 first, i64 rows) const {
    const Context& c = Context::current();
    MicroBatchRequest r{.numbers = {}, .mine = shard_range(rows, 1, c.mesh().dp(), c.coord().dp())};
    for (i64 i = 0; i < rows; ++i) r.numbers.push_back(first + i);
    const MicroBatchExamples m = read_examples(data, {r}, 1).front();
    return pipeline->collate(m.mine, m.shape);
  }
  std::vector<double> logits(const Batch& b) const {
    const auto samples = b.fields.find("samples");
    const bool segmented = samples != b.fields.end();
    return to_values(model->apply(*params,
                                  {b["input_ids"], b["positions"], segmented ? samples->second : Tensor()},
                                  {.segmented = segmented}));
  }
  std::unique_ptr<Model> model;
  std::unique_ptr<Pipeline> pipeline;
  std::optional<ParamTree> params;
};

std::string prompt_line(const std::string& prompt, const std::string& completion) {
  return nlohmann::json{{"prompt", prompt}, {"completion", completion}}.dump() + "\n";
}

TEST_F(LmData, FieldsOfARow) {
  const std::string lines = prompt_line("ab", "c") + R"({"text": "xyz", "id": "t"})" + "\n";
  const auto apart = examples(lines, {.max_length = 8}, true, *bytes_);
  ASSERT_EQ(apart->size(), 1);
  EXPECT_EQ(apart->length(0), 8);
  const Example e = apart->get(0);
  EXPECT_EQ(e.ids.at("input_ids"), (std::vector<i32>{'a', 'b', 'c', 256, 'x', 'y', 'z', 256}));
  EXPECT_EQ(e.ids.at("labels"), (std::vector<i32>{-100, 'c', 256, -100, 'y', 'z', 256, -100}));
  EXPECT_EQ(e.ids.at("samples"), (std::vector<i32>{1, 1, 1, 1, 2, 2, 2, 2}));
  const auto across = examples(lines, {.max_length = 8}, false, *bytes_);
  const Example a = across->get(0);
  EXPECT_EQ(a.ids.at("labels"), (std::vector<i32>{-100, 'c', 256, 'x', 'y', 'z', 256, -100}));
  EXPECT_EQ(a.ids.count("samples"), 0u);
  EXPECT_NE(across->fingerprint(), apart->fingerprint());
  const auto single = examples(lines, {.max_length = 8, .packing = false}, false, *bytes_, true);
  ASSERT_EQ(single->size(), 2);
  EXPECT_EQ(single->get(0).ids.at("prompt"), (std::vector<i32>{'a', 'b'}));
  EXPECT_EQ(single->get(0).text, "c");
  EXPECT_EQ(single->get(1).id, "\"t\"");
  EXPECT_EQ(single->get(1).ids.count("prompt"), 0u);
  // Documents in a window: the last token of one is not used to predict the next document.
  const auto text = windows("ab\nxyz\n", 16, *bytes_, Documents::line, true)->get(0);
  EXPECT_EQ(text.ids.at("input_ids"), (std::vector<i32>{'a', 'b', 256, 'x', 'y', 'z'}));
  EXPECT_EQ(text.ids.at("labels"), (std::vector<i32>{'b', 256, -100, 'y', 'z', 256}));
  EXPECT_EQ(text.ids.at("samples"), (std::vector<i32>{1, 1, 1, 2, 2, 2}));
}

// The logits of the second example have the same bits for any first example, on every mesh. They equal those
// of the example alone in a row up to fp32 rounding.
TEST_F(LmData, ExamplesOfARowDoNotAttendToEachOther) {
  const std::string second = prompt_line("What is 2 + 3?", " five, I think");
  std::vector<std::shared_ptr<ExampleDataset>> all;
  for (const std::string& first : {prompt_line("Some prompt", " and an end"),
                                   prompt_line("Quite other", " words here"), std::string()}) {
    all.push_back(examples(first + second, {.max_length = 60}, true, *bytes_));
    ASSERT_EQ(all.back()->size(), 1);
  }
  const i64 n = all[0]->length(0), m = all[2]->length(0);
  ASSERT_EQ(n, all[1]->length(0));
  for (const std::string name : {"gpt2", "llama", "opt", "gptj"})
    for (const Mesh& mesh : {Mesh{1, 1}, Mesh{1, 2}})
      on_mesh(mesh, [&](Context&) {
        const Lm lm(name, true);
        const auto logits = [&](int k) { return lm.logits(lm.batch(*all[static_cast<size_t>(k)], 0, 1)); };
        const auto a = logits(0), b = logits(1), alone = logits(2);
        const i64 head = (n - m) * lm.model->vocab_size();
        const std::vector<double> of_a(a.begin() + head, a.end()), of_b(b.begin() + head, b.end());
        EXPECT_EQ(of_a, of_b) << name << " mp " << mesh.mp();
        EXPECT_NE(a, b);
        // 2 layers of fp32: a few hundred roundings of 6e-8, relative to the largest logit.
        EXPECT_LT(distance(of_a, alone), 1e-5) << name;
      });
}

// Loss and perplexity of transformers in fp64 (scripts/make_perplexity_fixture.py); fp32 sums of 600 terms.
TEST_F(LmData, PerplexityEqualsTransformers) {
  const auto expected = nlohmann::json::parse(slurp(kFixtures + "/perplexity/expected.json"));
  for (const auto& [name, e] : expected.items()) {
    const auto tokenizer = load_tokenizer(kFixtures + "/tokenizers/" + e["tokenizer"].get<std::string>());
    const auto data = windows(slurp(kFixtures + "/perplexity/text.txt"), e["max_length"], *tokenizer);
    EXPECT_EQ(data->index().size(), e["tokens"].get<i64>());
    for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 2}})
      on_mesh(mesh, [&](Context&) {
        const Lm lm(name, false);
        const auto metrics = evaluate(*lm.pipeline, *lm.params, data, 3);
        const double loss = e["loss"], perplexity = e["perplexity"];
        EXPECT_NEAR(metrics.at("loss"), loss, 1e-6 * loss) << name;
        EXPECT_NEAR(metrics.at("perplexity"), perplexity, 1e-5 * perplexity) << name;
      });
  }
}

// Packed or one example per row, on every mesh: the same mean over the same targets.
TEST_F(LmData, LossOfExamplesIsTheSameOnEveryMesh) {
  std::string lines;
  for (int k = 0; k < 23; ++k)
    lines +=
        prompt_line("question " + std::to_string(k * k), std::string(1 + k % 5, static_cast<char>('a' + k)));
  const auto packed = examples(lines, {.max_length = 48}, true, *bytes_);
  const auto single = examples(lines, {.max_length = 48, .packing = false}, true, *bytes_);
  EXPECT_LT(packed->size(), single->size());
  double first = 0;
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 1}, Mesh{1, 2}, Mesh{2, 2}})
    for (const auto& data : {packed, single})
      on_mesh(mesh, [&](Context& c) {
        const Lm lm("llama", true);
        const double loss = evaluate(*lm.pipeline, *lm.params, data, 4).at("loss");
        if (c.world().rank() != 0) return;
        if (first == 0) first = loss;
        EXPECT_NEAR(loss, first, 2e-6 * first);  // another order of fp32 sums
      });
}

TEST_F(LmData, AMicroBatchWithoutATarget) {
  // Pieces of a long prompt: the first two rows have no targets.
  const auto data = examples(prompt_line(std::string(30, 'p'), "c"),
                             {.max_length = 12, .packing = false, .too_long = "split"}, true, *bytes_);
  ASSERT_EQ(data->size(), 3);
  on_mesh({2, 1}, [&](Context&) {
    Lm lm("gpt2", true);
    const Batch none = lm.batch(*data, 0, 2);
    TrainStep step(*lm.pipeline, *lm.params, {});
    const StepOutcome a = step.run({none}, {0}, 0, 0, 1e-3);
    EXPECT_EQ(a.weight, 0);
    EXPECT_EQ(a.loss, 0);
    EXPECT_TRUE(a.finite);
    // Together with a micro-batch that has targets, it changes nothing.
    const StepOutcome b = step.run({none, lm.batch(*data, 2, 1)}, {0, 2}, 1, 0, 1e-3);
    EXPECT_EQ(b.weight, 2);
    EXPECT_GT(b.loss, 0);
    EXPECT_TRUE(b.finite);
  });
}

}  // namespace
}  // namespace redco

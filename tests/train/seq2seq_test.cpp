// Pipeline seq2seq: losses against transformers, equal steps on all meshes, metrics of answers, batches of
// similar length.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "ckpt/params_io.h"
#include "data/builtin/builtin.h"
#include "pipeline/pair_dataset.h"
#include "pipelines/generation_metrics.h"
#include "pipelines/pipelines.h"
#include "support/error_text.h"
#include "support/ranks.h"
#include "support/temp_dir.h"
#include "train/evaluate.h"
#include "train/prefetch.h"
#include "train/step_order.h"
#include "train/trainer.h"

namespace redco {
namespace {

using namespace redco::testing;
using Json = nlohmann::json;
using test::slurp;
using test::spill;
using ::testing::HasSubstr;

const std::string kSeq2SeqFixtures = REDCO_FIXTURES;

const char* kT5 =
    R"({"model_type": "t5", "vocab_size": 258, "d_model": 32, "d_ff": 48, "d_kv": 8, "num_heads": 4,
  "num_layers": 1, "n_positions": 16, "dropout_rate": 0.1, "pad_token_id": 256, "eos_token_id": 256,
  "decoder_start_token_id": 256, "relative_attention_num_buckets": 8})";
const char* kBart =
    R"({"model_type": "bart", "vocab_size": 258, "d_model": 32, "encoder_layers": 1, "decoder_layers": 1,
  "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48,
  "max_position_embeddings": 16, "dropout": 0.1, "pad_token_id": 257, "eos_token_id": 256,
  "decoder_start_token_id": 256})";

// A job on a built-in data set, as job/ makes it from a config.
struct Seq2SeqJob {
  explicit Seq2SeqJob(const std::string& config, const std::string& cache = "")
      : model(make_model({config, "test"})) {
    pipeline->model = model.get();
    pipeline->tokenizer = tokenizer.get();
    auto s = std::make_shared<PipelineSettings>();
    s->generation.tokens = {
        .eos = {256}, .pad = 256, .decoder_start = 256, .forced_bos = {}, .forced_eos = {}};
    s->generation.settings.max_new_tokens = 10;
    s->eval.n_outputs = 3;
    s->train.label_smoothing = 0.1;
    settings = s;
    pipeline->settings = s;
    params.emplace(make_params(model->params(), shard_specs(model->params().specs, mesh().mp()).layouts));
    initialize(*params, 1);
    if (cache.empty()) return;
    pipeline->train_data = pipeline->open({.files = {"builtin:reverse"}, .cache = cache, .max_length = 16});
    pipeline->eval_sets = {{pipeline->open(
        {.evaluation = true, .files = {"builtin:reverse"}, .cache = cache, .max_length = 16})}};
  }
  static Mesh mesh() { return Context::current().mesh(); }
  // The losses of all steps.
  std::vector<double> train(const std::string& workdir, i64 steps, bool grouped = true) {
    Context::current().world().on_first([&] { std::filesystem::create_directories(workdir); });
    TrainJob job;
    job.pipeline = pipeline.get();
    job.params = &*params;
    job.train.seed = settings->train.seed;
    job.train.label_smoothing = settings->train.label_smoothing;
    job.train.global_batch_size = settings->train.global_batch_size;
    job.train.max_steps = steps;
    job.train.learning_rate = 3e-3;
    job.train.schedule = "constant";
    job.train.warmup_ratio = 0;
    job.train.logging_steps = 1;
    job.eval.sanity_check = false;
    job.global_batch_size = 12;
    job.per_device_batch_size = 4;  // accumulated, differently on each mesh
    job.group_by_length = grouped;
    job.pipeline_name = "seq2seq";
    job.workdir = workdir;
    job.progress = false;
    pipeline->eval_sets.clear();
    redco::train(job);
    std::vector<double> out;
    std::ifstream in(workdir + "/metrics.jsonl");
    for (std::string line; std::getline(in, line);)
      if (const Json j = Json::parse(line); j.contains("loss")) out.push_back(j["loss"]);
    return out;
  }
  std::unique_ptr<Model> model;
  std::unique_ptr<Tokenizer> tokenizer = load_tokenizer("bytes");
  std::unique_ptr<Pipeline> pipeline = make_seq2seq_pipeline();
  std::shared_ptr<PipelineSettings> settings;
  std::optional<ParamTree> params;
};

// Losses of pairs of unequal lengths, plain and smoothed (scripts/make_seq2seq_fixtures.py, in fp64).
TEST(TextToText, LossesEqualTransformers) {
  std::ifstream in(kSeq2SeqFixtures + "/seq2seq/losses.jsonl");
  int n = 0;
  for (std::string line; std::getline(in, line); ++n) {
    const Json expected = Json::parse(line);
    const std::string folder = kSeq2SeqFixtures + "/" + expected["model"].get<std::string>();
    std::vector<Example> rows;
    for (const Json& pair : expected["rows"]) {
      Example& e = rows.emplace_back();
      e.ids["source"] = pair[0].get<std::vector<i32>>();
      e.ids["labels"] = pair[1].get<std::vector<i32>>();
    }
    for (const Mesh& mesh : {Mesh{1, 1}, Mesh{1, 2}, Mesh{3, 1}})
      on_mesh(mesh, [&](Context& c) {
        Seq2SeqJob job(slurp(folder + "/config.json"));
        ckpt::load_params(
            *job.params, ckpt::ModelFiles::open(folder),
            [&](const std::string& name) { return job.model->canonical_name(name); },
            job.model->params().aliases);
        const Range mine = shard_range(3, 1, c.mesh().dp(), c.coord().dp());
        const Batch batch = job.pipeline->collate(std::span(rows).subspan(mine.begin, mine.end - mine.begin),
                                                  {.rows = 3, .mine = mine, .length = 6, .target_length = 7});
        double weight = 0;
        for (i64 r = mine.begin; r < mine.end; ++r)
          weight += static_cast<double>(rows[r].ids["labels"].size());
        EXPECT_EQ(batch.weights.at("loss"), weight);
        for (const bool smoothed : {false, true}) {
          StepContext ctx;
          ctx.apply.train = smoothed;  // the fixtures have no dropout
          const double sum = to_values(job.pipeline->loss(*job.params, batch, ctx).at(0).sum)[0];
          // fp32 against fp64: rounding of some 1e-6 in the logits of a few layers.
          const double want = expected[smoothed ? "smoothed" : "loss"];
          EXPECT_NEAR(sum / 13, want, 1e-5 * want) << line << " " << smoothed;
        }
      });
  }
  EXPECT_EQ(n, 2);
}

// Dropout, label smoothing, micro-batches and batches by length: the first 20 steps are the same on any mesh.
TEST(TextToText, StepsDoNotDependOnTheMesh) {
  test::TempDir dir(test::TempDir::in_memory);
  for (const char* config : {kT5, kBart}) {
    std::vector<double> one;
    for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 1}, Mesh{1, 2}})
      on_mesh(mesh, [&](Context& c) {
        const std::string name = fmt::format("{}-{}x{}", config == kT5 ? "t5" : "bart", mesh.dp(), mesh.mp());
        Seq2SeqJob job(config, dir / "cache");
        const std::vector<double> losses = job.train(dir / name, 20);
        if (c.world().rank() != 0) return;
        ASSERT_EQ(losses.size(), 20u);
        if (one.empty()) one = losses;
        for (std::size_t i = 0; i < 20; ++i)
          EXPECT_NEAR(losses[i], one[i], 1e-4 * one[i]) << name << " " << i;
        EXPECT_LT(losses[19], 0.8 * losses[0]);
      });
  }
}

TEST(TextToText, AResumedRunEqualsTheUninterruptedRun) {
  test::TempDir dir(test::TempDir::in_memory);
  on_one_rank([&](Context&) {
    const auto run = [&](const std::string& name, i64 steps) {
      Seq2SeqJob job(kT5, dir / "cache");
      return job.train(dir / name, steps);
    };
    const std::vector<double> whole = run("whole", 12);
    run("parts", 7);
    EXPECT_EQ(run("parts", 12), whole);
    // Another order of examples is an error.
    Seq2SeqJob other(kT5, dir / "cache");
    EXPECT_THROW(other.train(dir / "parts", 14, false), Error);
  });
}

// The first five examples of another dataset.
class FirstFive : public Dataset {
 public:
  explicit FirstFive(const Dataset& all) : all_(all) {}
  i64 size() const override { return 5; }
  i64 length(i64 i) const override { return all_.length(i); }
  i64 target_length(i64 i) const override { return all_.target_length(i); }
  Example get(i64 i) const override { return all_.get(i); }
  std::string fingerprint() const override { return "few"; }

 private:
  const Dataset& all_;
};

TEST(TextToText, EvaluationsMeasureAnswers) {
  test::TempDir dir(test::TempDir::in_memory);
  on_mesh({2, 1}, [&](Context& c) {
    Seq2SeqJob job(kBart, dir / "cache");
    const auto few = std::make_shared<FirstFive>(*job.pipeline->eval_sets.at(0).data);
    const Evaluation e = evaluate_sets(*job.pipeline, *job.params, {{few}}, 2, 3);
    std::vector<std::string> names;
    for (const auto& [name, value] : e.metrics) names.push_back(name);
    EXPECT_THAT(names, ::testing::ElementsAre("bleu", "chrf", "exact_match", "loss", "rouge1", "rouge2",
                                              "rougeL", "rougeLsum"));
    if (c.world().rank() != 0) return;
    ASSERT_EQ(e.outputs.at(0).lines.size(), 5u);  // all of them are measured
    for (const auto& [name, value] : generation_metrics({}, e.outputs.at(0).lines))
      EXPECT_EQ(e.metrics.at(name), value);
    const Json first = Json::parse(e.outputs.at(0).lines[0]);
    EXPECT_EQ(first["source"], job.tokenizer->decode(few->get(0).ids.at("source")));
    EXPECT_EQ(first["reference"], few->get(0).text);
    EXPECT_TRUE(first["prediction"].is_string());
  });
}

TEST(TextToText, ExamplesThatAnEvaluationGenerates) {
  on_one_rank([&](Context&) {
    Seq2SeqJob job(kT5);
    EXPECT_TRUE(job.pipeline->measures_outputs());
    job.settings->eval.metrics = {"loss"};
    EXPECT_FALSE(job.pipeline->measures_outputs());
    job.settings->eval.metrics = {"bleu"};
    EXPECT_TRUE(job.pipeline->measures_outputs());
    job.settings->eval.n_outputs = 0;
    EXPECT_FALSE(job.pipeline->measures_outputs());
  });
}

TEST(TextToText, RequestsFromLines) {
  on_one_rank([&](Context&) {
    Seq2SeqJob job(kT5);
    job.settings->data.source_prefix = "say ";
    job.settings->data.fields.source = "en";
    job.settings->data.max_source_length = 6;
    const std::vector<i32> ids = {'s', 'a', 'y', ' ', 'a', 'b'};
    for (const char* key : {"en", "prompt", "text"}) {
      const auto e = job.pipeline->request(Json{{key, "ab"}, {"id", 3}}.dump(), "x:1");
      ASSERT_TRUE(e);
      EXPECT_EQ(e->ids.at("source"), ids);
    }
    EXPECT_EQ(job.pipeline->request(R"({"en": "abcd"})", "x:1")->ids.at("source"), ids);
    const auto refused = [&](const std::string& line) {
      return error_text<ContentsError>([&] { job.pipeline->request(line, "x:1"); });
    };
    EXPECT_THAT(refused(R"({"de": "a"})"), HasSubstr("x:1: no \"en\"; its keys are de"));
    EXPECT_THAT(refused(R"({"en": 3})"), HasSubstr("x:1: \"en\" is not a text but number"));
    EXPECT_THAT(refused(R"({"en": " "})"), HasSubstr("x:1: \"en\" is empty"));
    job.pipeline->tokenizer = nullptr;
    EXPECT_THAT(usage_error([&] { job.pipeline->request(R"({"en": "a"})", "x:1"); }),
                HasSubstr("no tokenizer"));
    const auto gpt2 = make_model({slurp(kSeq2SeqFixtures + "/gpt2/config.json"), "gpt2"});
    job.pipeline->model = gpt2.get();
    EXPECT_THAT(usage_error([&] { job.pipeline->params(); }), HasSubstr("gpt2 is a causal-lm model"));
  });
}

TEST(GenerationMetrics, MetricsOfOutputs) {
  const std::vector<std::string> outputs = {
      R"({"prediction": "the cat sat on the mat", "reference": "the cat sat on the mat"})",
      R"({"prediction": ["a dog", "a cat"], "references": ["two dogs run", "a dog"]})"};
  const auto all = generation_metrics({}, outputs);
  EXPECT_EQ(all.at("exact_match"), 1);
  EXPECT_DOUBLE_EQ(all.at("rougeLsum"), 1);
  EXPECT_NEAR(all.at("bleu"), 100, 1e-9);
  EXPECT_EQ(generation_metrics({"loss", "chrf"}, outputs).size(), 1u);
  EXPECT_THROW(generation_metrics({}, {R"({"prediction": 3, "reference": "a"})"}), UsageError);
}

// Lengths that depend only on the example's index.
class Lengths : public Dataset {
 public:
  explicit Lengths(i64 n) : n_(n) {}
  i64 size() const override { return n_; }
  i64 length(i64 i) const override { return 1 + i * i * 31 % 97; }
  i64 target_length(i64 i) const override { return i % 5; }
  Example get(i64) const override { return {}; }
  std::string fingerprint() const override { return ""; }

 private:
  i64 n_;
};

TEST(StepOrder, BatchesOfSimilarLength) {
  constexpr i64 kBatch = 8, kN = 2 * 64 * kBatch + 3 * kBatch + 5;  // the last pool is incomplete
  const Lengths data(kN);
  std::vector<std::vector<i64>> epochs;
  for (const u64 epoch : {0, 1}) {
    const StepOrder order(data, 7, epoch, true, kBatch);
    std::vector<i64>& all = epochs.emplace_back();
    i64 padded = 0, plain = 0;
    const EpochOrder any(kN, 7, epoch);
    for (i64 begin = 0; begin < kN; begin += kBatch) {
      i64 most = 0, most_plain = 0;
      for (i64 k = begin; k < std::min(kN, begin + kBatch); ++k) {
        all.push_back(order.at(k));
        most = std::max(most, data.length(all.back()));
        most_plain = std::max(most_plain, data.length(any.at(k)));
      }
      padded += kBatch * most;
      plain += kBatch * most_plain;
    }
    EXPECT_EQ(std::set<i64>(all.begin(), all.end()).size(), static_cast<std::size_t>(kN));
    // The mean length is 49; the longest of eight uniform lengths is about 8/9 of 97.
    EXPECT_LT(padded, 0.7 * static_cast<double>(plain));
    // Any position first: the order of calls has no effect.
    const StepOrder again(data, 7, epoch, true, kBatch);
    for (const i64 k : {kN - 1, i64{3}, i64{600}}) EXPECT_EQ(again.at(k), all[static_cast<std::size_t>(k)]);
  }
  EXPECT_NE(epochs[0], epochs[1]);
  // The longest batch is not always the first.
  std::set<i64> firsts;
  for (u64 epoch = 0; epoch < 6; ++epoch)
    firsts.insert(data.length(StepOrder(data, 7, epoch, true, kBatch).at(0)) / 20);
  EXPECT_GT(firsts.size(), 2u);
  const StepOrder plain(data, 7, 0, false, kBatch);
  const EpochOrder same(kN, 7, 0);
  for (i64 k = 0; k < kN; ++k) EXPECT_EQ(plain.at(k), same.at(k));
}

}  // namespace
}  // namespace redco

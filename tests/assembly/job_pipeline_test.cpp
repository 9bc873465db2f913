// A pipeline's settings and data.
#include "assembly/job_pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "assembly/job_model.h"
#include "support/error_text.h"
#include "support/jobs.h"
#include "support/ranks.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using redco::testing::on_one_rank;
using test::job_of;
using test::spill;
using ::testing::HasSubstr;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

TEST(JobPipeline, GetsTheJobsSectionsAndItsOwnSettingsAsJson) {
  const JobConfig job = job_of(
      "data: {max_length: 7}\ntrain: {label_smoothing: 0.25}\nmaml: {n_ways: 3}\n"
      "settings: {beta: 0.5, 'a \"b\"': [x, ~]}\n");
  TextGeneration generation;
  generation.batch_size = 5;
  const auto p = make_job_pipeline(job, nullptr, nullptr, generation, "folder");
  EXPECT_EQ(p->settings->data.max_length, 7);
  EXPECT_EQ(p->settings->train.label_smoothing, 0.25);
  EXPECT_EQ(p->settings->maml.n_ways, 3);
  EXPECT_EQ(p->settings->generation.batch_size, 5);
  EXPECT_EQ(p->settings->weights_folder, "folder");
  EXPECT_EQ(Json::parse(p->settings->own), Json::parse(R"({"beta": 0.5, "a \"b\"": ["x", null]})"));
  EXPECT_EQ(make_job_pipeline(job_of(""), nullptr, nullptr)->settings->own, "{}");
}

class JobData : public ::testing::Test {
 protected:
  Words words(const Words& more) const {
    Words all = {"pipeline=classification",      "model.arch=bert",
                 "model.tokenizer=bytes",        "model.hidden_size=8",
                 "model.num_hidden_layers=1",    "model.num_attention_heads=2",
                 "model.intermediate_size=8",    "model.max_position_embeddings=32",
                 "data.train=" + (dir / "a.tsv")};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::map<std::string, std::string> config(const Words& more) const {
    std::map<std::string, std::string> out;
    on_one_rank([&](Context&) { out = with_data_config(job_of("", words(more))).model.config; });
    return out;
  }
  test::TempDir dir;
};

TEST_F(JobData, DecideTheNumberOfClasses) {
  spill(dir / "a.tsv", "text\tlabel\nx\tsour\ny\tbitter\nz\tsour\nu\tsweet\n");
  const auto found = config({});
  EXPECT_EQ(Json::parse(found.at("id2label")), Json::parse(R"({"0": "bitter", "1": "sour", "2": "sweet"})"));
  // A value of the job takes precedence.
  const auto named = config({"data.label_names=[sweet, sour, bitter, salty]"});
  EXPECT_EQ(Json::parse(named.at("id2label"))["3"], "salty");
  // Other pipelines leave the job unchanged.
  on_one_rank([&](Context&) {
    const JobConfig lm = job_of("model: {arch: gpt2, tokenizer: bytes}\ndata: {train: nowhere.txt}\n");
    EXPECT_EQ(dump_job(with_data_config(lm)), dump_job(lm));
  });
}

TEST_F(JobData, ComeFromThePipelineElseFromTexts) {
  spill(dir / "a.tsv", "text\tlabel\nx\tsour\ny\tbitter\n");
  spill(dir / "a.txt", "some words of a text\n");
  on_one_rank([&](Context&) {
    const auto open = [&](const JobConfig& job, bool evaluation) {
      const auto tokenizer = job_tokenizer(job);
      const ModelSource source = model_source(job, tokenizer.get());
      const auto model = make_job_model(job, source);
      const auto pipeline = make_job_pipeline(job, model.get(), tokenizer.get());
      if (!evaluation) return make_training_data(job, *pipeline, "", dir / "cache")->size();
      i64 sum = 0;
      for (const EvalSet& set : make_eval_sets(job, *pipeline, "", dir / "cache")) sum += set.data->size();
      return sum;
    };
    const JobConfig labelled = with_data_config(job_of("", words({})));
    EXPECT_EQ(open(labelled, false), 2);
    EXPECT_EQ(open(labelled, true), 0);  // no data.eval
    const std::string lm =
        "model: {arch: gpt2, n_layer: 1, n_embd: 8, n_head: 2, n_positions: 8, vocab_size: 257}\n"
        "data: {train: " +
        (dir / "a.txt") + "}\n";
    // 21 bytes and an end token make 3 windows of 8 tokens, which overlap by one.
    EXPECT_EQ(open(job_of(lm, {"model.tokenizer=bytes"}), false), 3);
    EXPECT_THAT(usage_error([&] { open(job_of(lm), false); }), HasSubstr("gpt2 model has no tokenizer"));
  });
}

}  // namespace
}  // namespace redco

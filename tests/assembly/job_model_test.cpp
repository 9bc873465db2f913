// The model, adapter and tokenizer of a job.
#include "assembly/job_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "assembly/job_params.h"
#include "models/config_tree.h"
#include "support/error_text.h"
#include "support/jobs.h"
#include "support/ranks.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using redco::testing::on_one_rank;
using test::job_of;
using ::testing::HasSubstr;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

const std::string kFixtures = REDCO_FIXTURES;
const std::string kGpt2 = "model.path=" + kFixtures + "/gpt2";
const std::string kLora = kFixtures + "/lora-gpt2";

Json config_of(const Words& words) {
  const JobConfig job = job_of("", words);
  const auto tokenizer = job_tokenizer(job);
  return model_source(job, tokenizer.get()).config.tree().json;
}
std::string refused(const Words& words) {
  return usage_error([&] { config_of(words); });
}

TEST(JobModel, AModelOfAFamilyGetsItsVocabularyFromTheTokenizer) {
  const Words arch = {"model.arch=gpt2", "model.tokenizer=bytes"};
  EXPECT_EQ(config_of(arch), Json::parse(R"({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"],
    "vocab_size": 257, "bos_token_id": 256, "eos_token_id": 256, "pad_token_id": 256})"));
  // Keys of the job are kept.
  const Json given =
      config_of({"model.arch=gpt2", "model.tokenizer=bytes", "model.vocab_size=300", "model.pad_token_id=0"});
  EXPECT_FALSE(given.contains("vocab_size"));
  EXPECT_FALSE(given.contains("pad_token_id"));
  EXPECT_EQ(given.at("eos_token_id"), 256);
  // BART never trains the padding token's row: a tokenizer without one gets an extra row.
  EXPECT_EQ(config_of({"pipeline=seq2seq", "model.arch=bart", "model.tokenizer=bytes"})["vocab_size"], 258);
}

TEST(JobModel, AnUnknownFamilyAndAMissingVocabularyAreErrors) {
  EXPECT_THAT(refused({"model.arch=gtp2", "model.tokenizer=bytes"}), HasSubstr("did you mean gpt2?"));
  EXPECT_THAT(refused({"model.arch=gpt2"}), HasSubstr("needs model.tokenizer"));
  EXPECT_EQ(refused({"model.arch=gpt2", "model.vocab_size=9"}), "no error");
  EXPECT_THAT(refused({}), HasSubstr("Give model.path"));
}

TEST(JobModel, AFolderMustHoldAModel) {
  const test::TempDir dir;
  EXPECT_THAT(refused({"model.path=" + (dir / "none")}), HasSubstr("no such folder"));
  EXPECT_THAT(refused({"model.path=" + dir.path()}), HasSubstr("has no config.json"));
}

TEST(JobModel, ConfigKeysOfTheJobOverrideThoseOfTheFolder) {
  const JobConfig job = job_of("", {kGpt2, "model.n_layer=1"});
  const JobConfig whole = job_of("", {kGpt2});
  const auto layers = [](const JobConfig& j) {
    int n = 0;
    const auto model = make_job_model(j, model_source(j, nullptr));
    for (const ParamSpec& s : model->params().specs) n += s.name.ends_with("ln_1.weight");
    return n;
  };
  EXPECT_EQ(layers(whole), 2);
  EXPECT_EQ(layers(job), 1);
}

TEST(JobModel, EmbeddingsGrowToTheTokenizer) {
  const std::string llama = "model.path=" + kFixtures + "/llama";  // 600 rows
  const std::string tokenizer = "model.tokenizer=" + kFixtures + "/tokenizers/llama3";
  EXPECT_EQ(config_of({llama, tokenizer})["vocab_size"], 600);
  EXPECT_EQ(config_of({llama, tokenizer, "model.resize_embeddings=true"})["vocab_size"], 640);
  EXPECT_EQ(config_of({llama, "model.tokenizer=bytes", "model.resize_embeddings=true"})["vocab_size"], 600);
  EXPECT_THAT(refused({llama, "model.resize_embeddings=true"}), HasSubstr("set model.tokenizer"));
}

TEST(JobModel, WeightsOfAnotherTaskGetANewHead) {
  const auto source = [](const std::string& folder, const std::string& labels) {
    Words words = {"pipeline=classification", "model.path=" + kFixtures + "/" + folder};
    if (!labels.empty()) words.push_back("model.num_labels=" + labels);
    return model_source(job_of("", words), nullptr);
  };
  const ModelSource other = source("bert-mlm", "");
  EXPECT_TRUE(other.new_head);
  EXPECT_EQ(other.config.tree().json["architectures"][0], "BertForSequenceClassification");
  EXPECT_FALSE(source("bert-seqcls", "").new_head);
  EXPECT_FALSE(source("bert-seqcls", "3").new_head);
  EXPECT_FALSE(source("deit-teacher", "").new_head);
  const ModelSource more = source("bert-seqcls", "5");
  EXPECT_TRUE(more.new_head);
  EXPECT_FALSE(more.config.tree().json.contains("id2label"));
}

TEST(JobModel, AnAdapterHasABase) {
  const ModelSource named = model_source(job_of("", {kGpt2, "model.adapter=" + kLora}), nullptr);
  EXPECT_EQ(named.folder, kFixtures + "/gpt2");
  EXPECT_EQ(named.adapter, kLora);
  // As model.path it names its base.
  const ModelSource alone = model_source(job_of("", {"model.path=" + kLora}), nullptr);
  EXPECT_TRUE(std::filesystem::equivalent(alone.folder, kFixtures + "/gpt2")) << alone.folder;
  EXPECT_EQ(alone.adapter, kLora);
  EXPECT_THAT(refused({"model.path=" + kLora, "model.adapter=" + kLora}), HasSubstr("remove model.adapter"));
  EXPECT_THAT(refused({kGpt2, "model.adapter=" + kFixtures + "/none"}), HasSubstr("no such folder"));
}

TEST(JobModel, TrainingAnAdapterFurtherKeepsItsShape) {
  const auto lora = [](const Words& more) {
    Words words = {kGpt2, "model.adapter=" + kLora};
    words.insert(words.end(), more.begin(), more.end());
    return *training_source(job_of("", words), nullptr).lora;
  };
  const i64 rank = lora({}).rank;
  EXPECT_EQ(lora({"train.lora.dropout=0.5"}).dropout, 0.5);
  EXPECT_THAT(usage_error([&] { lora({"train.lora.rank=" + std::to_string(rank + 1)}); }),
              HasSubstr("has rank " + std::to_string(rank)));
  EXPECT_FALSE(training_source(job_of("", {kGpt2}), nullptr).lora);
  const auto fresh = training_source(job_of("", {kGpt2, "train.lora.rank=3"}), nullptr).lora;
  ASSERT_TRUE(fresh);
  EXPECT_EQ(fresh->alpha, 3);  // ~ is the rank
}

TEST(JobModel, TheTokenizerComesFromTheJobElseFromTheFolder) {
  EXPECT_EQ(job_tokenizer(job_of("", {kGpt2})), nullptr);
  EXPECT_EQ(job_tokenizer(job_of("", {kGpt2, "model.tokenizer=bytes"}))->vocab_size(), 257);
  test::TempDir dir;
  std::filesystem::copy_file(kFixtures + "/gpt2/config.json", dir / "config.json");
  std::filesystem::copy_file(kFixtures + "/tokenizers/gpt2/tokenizer.json", dir / "tokenizer.json");
  const auto own = job_tokenizer(job_of("", {"model.path=" + dir.path()}));
  ASSERT_TRUE(own);
  EXPECT_NE(own->vocab_size(), 257);
}

TEST(JobModel, OnlyRandomWeightsDependOnTheSeed) {
  const auto values = [](const Words& words) {
    std::vector<double> out;
    on_one_rank([&](Context&) {
      const JobConfig job = job_of("", words);
      const auto tokenizer = job_tokenizer(job);
      const ModelSource source = model_source(job, tokenizer.get());
      const auto model = make_job_model(job, source);
      const ParamTree params = make_job_params(job, source, model.get(), model->params());
      out = to_values(params.values()[0]);
    });
    return out;
  };
  const Words random = {"model.arch=gpt2", "model.tokenizer=bytes", "model.n_layer=1",
                        "model.n_embd=8",  "model.n_head=2",        "model.n_positions=8"};
  Words other = random;
  other.push_back("train.seed=43");
  EXPECT_EQ(values(random), values(random));
  EXPECT_NE(values(random), values(other));
  EXPECT_EQ(values({kGpt2}), values({kGpt2, "train.seed=43"}));
}

}  // namespace
}  // namespace redco

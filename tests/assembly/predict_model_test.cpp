// The weights of predict, and prompts as ids.
#include "assembly/predict_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/error_text.h"
#include "support/jobs.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using test::job_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;
using Words = std::vector<std::string>;
using Ids = std::vector<i32>;

const std::string kGpt2Path = REDCO_FIXTURES "/gpt2";

JobConfig tiny(const Words& more = {}) {
  Words all = {"model.arch=gpt2", "model.tokenizer=bytes", "model.n_layer=1",         "model.n_embd=8",
               "model.n_head=2",  "model.n_positions=8",   "predict.max_new_tokens=3"};
  all.insert(all.end(), more.begin(), more.end());
  return job_of("", all);
}

TEST(PredictModel, PromptsAreEncoded) {
  const JobConfig job = tiny();
  const PredictModel m = load_predict_model(job);
  EXPECT_EQ(longest_prompt(*m.model), 7);  // one position is kept for the answer
  EXPECT_EQ(prompt_ids(m, job.predict, "abc", "here"), Ids({97, 98, 99}));
  EXPECT_EQ(prompt_ids(m, job.predict, "", "here"), Ids({256}));  // the token that begins a text
  EXPECT_EQ(prompt_ids(m, job.predict, "1234567", "here").size(), 7u);
  EXPECT_THAT(error_text<ContentsError>([&] { prompt_ids(m, job.predict, "12345678", "in.jsonl:3"); }),
              HasSubstr("in.jsonl:3: the prompt has 8 tokens, the model has 8 positions"));
  EXPECT_THAT(usage_error([&] {
                message_ids(m, job.predict, {{"user", "a", "", true}}, "in.jsonl:3");
              }),
              HasSubstr("in.jsonl:3: messages need a chat template"));
}

TEST(PredictModel, TruncationKeepsTheEndAndPositionsForTheAnswer) {
  const auto last = [](const std::string& max_new_tokens) {
    const JobConfig job = tiny({"predict.truncate_prompt=left", "predict.max_new_tokens=" + max_new_tokens});
    return prompt_ids(load_predict_model(job), job.predict, "123456789", "here");
  };
  EXPECT_EQ(last("3"), Ids({'5', '6', '7', '8', '9'}));
  EXPECT_EQ(last("1000"), Ids({'6', '7', '8', '9'}));  // the prompt keeps half of the positions
}

TEST(PredictModel, IdsOutsideTheVocabularyAreErrors) {
  const JobConfig job =
      tiny({"model.vocab_size=100", "model.bos_token_id=0", "model.eos_token_id=0", "model.pad_token_id=0"});
  const PredictModel m = load_predict_model(job);
  EXPECT_EQ(prompt_ids(m, job.predict, "a", "here"), Ids({97}));
  EXPECT_THAT(error_text<ContentsError>([&] { prompt_ids(m, job.predict, "ax", "here"); }),
              HasSubstr("here: token id 120 is outside the model's vocabulary of 100"));
}

TEST(PredictModel, WeightsComeFromModelPathElseTheyAreRandom) {
  EXPECT_EQ(load_predict_model(tiny()).source.folder, "");
  const Words path = {"model.path=" + kGpt2Path, "model.tokenizer=bytes"};
  EXPECT_EQ(load_predict_model(job_of("", path)).source.folder, kGpt2Path);
}

TEST(PredictModel, AnswersEndWithTheModelsTokens) {
  const PredictModel m = load_predict_model(job_of("", {"model.path=" + kGpt2Path, "model.tokenizer=bytes"}));
  EXPECT_THAT(m.tokens.eos, ElementsAre(511));  // from its config, not from the tokenizer
}

// FILE.settings.json names everything that an answer depends on, and nothing else.
TEST(PredictModel, SettingsOfPredictionsNameEverythingThatAnAnswerDependsOn) {
  const auto settings = [](const Words& more) {
    const JobConfig job = tiny(more);
    return prediction_settings(job, load_predict_model(job));
  };
  const std::string base = settings({});
  for (const char* same : {"predict.batch_size=3", "predict.prompt=x", "parallel.n_ranks=2", "workdir=w"})
    EXPECT_EQ(settings({same}), base) << same;
  for (const char* other : {"predict.seed=1", "predict.num_beams=2", "predict.truncate_prompt=left",
                            "model.n_layer=2", "train.seed=1", "train.compute_dtype=bf16"})
    EXPECT_NE(settings({other}), base) << other;
  EXPECT_EQ(Json::parse(base)["model"]["weights"], "random, train.seed=42");
}

// Those of a pipeline's own predictions too, as it declares them.
TEST(PredictModel, SettingsOfPredictionsHaveThoseOfThePipeline) {
  const auto settings = [](const Words& more) {
    Words all = {"pipeline=text_to_image",    "model.arch=dit",
                 "model.tokenizer=bytes",     "model.image_size=8",
                 "model.patch_size=4",        "model.hidden_size=8",
                 "model.num_hidden_layers=1", "model.num_attention_heads=2"};
    all.insert(all.end(), more.begin(), more.end());
    const JobConfig job = job_of("", all);
    return prediction_settings(job, load_predict_model(job));
  };
  const std::string base = settings({});
  EXPECT_EQ(Json::parse(base)["diffusion"],
            Json::parse(R"({"guidance_scale": 3.0, "num_inference_steps": 20, "seed": 42})"));
  EXPECT_EQ(settings({"diffusion.caption_dropout=0.3"}), base);  // of training
  for (const char* other : {"diffusion.guidance_scale=1", "diffusion.num_inference_steps=7", "train.seed=1"})
    EXPECT_NE(settings({other}), base) << other;
}

// A model never computes with ids outside of its table, so the padding of an answer is not one of them.
TEST(PredictModel, APaddingTokenOutsideTheVocabularyIsNotUsed) {
  const JobConfig job = tiny(
      {"model.vocab_size=100", "model.bos_token_id=0", "model.eos_token_id=0", "model.pad_token_id=256"});
  EXPECT_EQ(load_predict_model(job).tokens.pad, 0);
}

}  // namespace
}  // namespace redco

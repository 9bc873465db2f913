// A given job merged with the job that a checkpoint holds.
#include "job/checkpoint_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_text.h"
#include "support/jobs.h"

namespace redco {
namespace {

using test::job_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Words = std::vector<std::string>;

const std::string kSaved = "run/training/job.yaml";
const char* const kTrained =
    "pipeline: seq2seq\n"
    "model: {arch: bart, tokenizer: own.json, d_model: 32, encoder: {layers: 2}}\n"
    "data: {train: a.tsv, max_length: 64, fields: {source: en, target: de}, format: tsv}\n"
    "train: {seed: 7, global_batch_size: 8, learning_rate: 1.0e-2}\n"
    "predict: {max_new_tokens: 9}\n"
    "settings: {width: 5, depth: 2}\n";

CheckpointJob merged(const std::string& text, const Words& overrides = {},
                     const CheckpointFacts& facts = {}) {
  return merge_checkpoint_job(job_of(text, overrides), {kSaved, dump_job(job_of(kTrained))}, facts);
}
std::vector<std::string> keys(const CheckpointJob& m) {
  std::vector<std::string> out;
  for (const Contradiction& c : m.contradictions) out.push_back(c.key);
  return out;
}

TEST(CheckpointJob, AnEmptyJobGetsWhatTheCheckpointDecidesAndNothingElse) {
  const CheckpointJob m = merged("");
  EXPECT_THAT(m.contradictions, IsEmpty());
  EXPECT_EQ(ignored_values(m, "run"), "");
  EXPECT_EQ(m.job.pipeline, "seq2seq");
  EXPECT_EQ(m.job.model.arch, "bart");
  EXPECT_EQ(m.job.model.tokenizer, "own.json");
  EXPECT_EQ(m.job.model.config.at("d_model"), "32");
  EXPECT_EQ(m.job.data.max_length, 64);
  EXPECT_EQ(m.job.data.fields.source, "en");
  EXPECT_EQ(m.job.train.seed, 7);
  EXPECT_EQ(m.job.train.global_batch_size, 8);
  EXPECT_EQ(m.job.settings.values.at("width"), "5");
  // Of the job alone.
  EXPECT_THAT(m.job.data.train, IsEmpty());
  EXPECT_FALSE(m.job.data.format);
  EXPECT_EQ(m.job.predict.max_new_tokens, PredictSettings().max_new_tokens);
  EXPECT_EQ(m.job.train.learning_rate, TrainSettings().learning_rate);
  // Not given, but messages know where they come from.
  EXPECT_FALSE(m.job.origins.given("data.max_length"));
  EXPECT_EQ(m.job.origins.where("data.max_length"), kSaved);
  EXPECT_EQ(m.job.origins.where("model.d_model"), kSaved);
  EXPECT_EQ(m.job.origins.where("predict.max_new_tokens"), "default");
}

TEST(CheckpointJob, TheJobFileThatWasTrainedContradictsNothing) {
  EXPECT_THAT(keys(merged(kTrained)), IsEmpty());
  EXPECT_THAT(keys(merged(dump_job(job_of(kTrained)))), IsEmpty());
}

TEST(CheckpointJob, ValuesOfAJobFileAreIgnoredInOneLine) {
  const CheckpointJob m = merged(
      "pipeline: lm\n"
      "model: {tokenizer: bytes, d_model: 16, encoder: {layers: 3, heads: 2}}\n"
      "data: {max_length: 32, fields: {source: en}}\n"
      "train: {seed: 1}\n"
      "predict: {max_new_tokens: 3}\n"
      "settings: {width: 6}\n");
  EXPECT_THAT(keys(m), ElementsAre("pipeline", "model.tokenizer", "model.d_model", "model.encoder.heads",
                                   "model.encoder.layers", "data.max_length", "settings.width"));
  EXPECT_EQ(m.job.pipeline, "seq2seq");
  EXPECT_EQ(m.job.model.tokenizer, "own.json");
  EXPECT_EQ(m.job.model.config.at("d_model"), "32");
  EXPECT_EQ(m.job.data.max_length, 64);
  EXPECT_EQ(m.job.settings.values.at("width"), "5");
  EXPECT_EQ(m.job.train.seed, 1);  // the job's if given
  EXPECT_EQ(m.job.predict.max_new_tokens, 3);
  EXPECT_NO_THROW(refuse_contradicting_overrides(m, "run"));
  EXPECT_EQ(
      ignored_values(m, "runs/x/checkpoints/step-00000020"),
      "[checkpoint] the settings of runs/x/checkpoints/step-00000020 are used: pipeline is seq2seq, not lm "
      "(job.yaml:1:11); model.tokenizer is own.json, not bytes (job.yaml:2:20); model.d_model is 32, not 16 "
      "(job.yaml:2:36); model.encoder.heads is its own, not 2 (job.yaml:2:49); and 3 more");
}

TEST(CheckpointJob, ContradictingOverridesAreErrorsThatNameBothValues) {
  const CheckpointJob m = merged("data: {max_length: 32}\n", {"model.tokenizer=bytes", "model.d_model=16",
                                                              "data.fields.target=de", "train.seed=3"});
  EXPECT_THAT(
      usage_error([&] { refuse_contradicting_overrides(m, "runs/x/checkpoints/step-00000020"); }),
      AllOf(HasSubstr("contradict the checkpoint runs/x/checkpoints/step-00000020"),
            HasSubstr("model.path=runs/x/checkpoints/step-00000020"),
            HasSubstr("override 'model.tokenizer=bytes': model.tokenizer is bytes, but the checkpoint has "
                      "own.json"),
            HasSubstr("model.d_model is 16, but the checkpoint has 32"), Not(HasSubstr("max_length")),
            Not(HasSubstr("fields")), Not(HasSubstr("seed"))));
}

TEST(CheckpointJob, TheChatTemplateAndSettingsOfAUsersPipelineMayBeOverridden) {
  const Words words = {"data.chat_template=builtin:chat", "settings.width=6"};
  const CheckpointJob m = merged("", words);
  EXPECT_THAT(keys(m), IsEmpty());
  EXPECT_EQ(m.job.data.chat_template, "builtin:chat");
  EXPECT_EQ(m.job.settings.values.at("width"), "6");
  EXPECT_EQ(m.job.settings.values.at("depth"), "2");
  // In a file they don't count.
  EXPECT_THAT(keys(merged("data: {chat_template: builtin:chat}\n")), ElementsAre("data.chat_template"));
}

TEST(CheckpointJob, PathsAreComparedByTheirFiles) {
  const auto with = [](bool same, const std::string& text) {
    return keys(
        merged(text, {}, {.same_files = [=](const auto&, const auto&, const auto&) { return same; }}));
  };
  EXPECT_THAT(with(true, "model: {tokenizer: other.json}\n"), IsEmpty());
  EXPECT_THAT(with(false, "model: {tokenizer: own.json}\n"), ElementsAre("model.tokenizer"));
  EXPECT_THAT(with(false, "model: {tokenizer: ~}\n"), IsEmpty());  // the model's own
}

TEST(CheckpointJob, AKeyThatTheSavedJobLeavesOpenIsComparedWithTheConfig) {
  const CheckpointFacts facts{
      .config = [](const std::string& key) { return std::string(key == "dropout" ? "0.1" : ""); }};
  EXPECT_THAT(keys(merged("model: {dropout: 0.1}\n", {}, facts)), IsEmpty());
  EXPECT_THAT(keys(merged("model: {dropout: 0.2}\n", {}, facts)), ElementsAre("model.dropout"));
}

TEST(CheckpointJob, KeysOfOtherVersionsAreListedAndBadTextIsAnError) {
  const CheckpointJob m = merge_checkpoint_job(job_of(""), {kSaved, "pipeline: lm\ntrain: {old: 1}\n"});
  EXPECT_THAT(m.unknown, ElementsAre("train.old"));
  EXPECT_THAT(error_text<ContentsError>([] {
                merge_checkpoint_job(job_of(""), {kSaved, "[1"});
              }),
              HasSubstr("the saved job can't be read"));
}

TEST(CheckpointJob, EverySettingOfTheModelAndItsDataSaysWhoDecides) {
  JobConfig fresh;
  for (const Setting& s : settings_of(fresh)) {
    const auto decider = s.decider.value_or(DecidedBy::job);
    const bool of_job = s.name == "train" || s.name == "eval" || s.name == "predict" ||
                        s.name == "parallel" || s.name == "fault" || s.name == "checkpoint" ||
                        s.name == "plan" || s.name == "workdir" || s.name == "plugins";
    EXPECT_EQ(decider == DecidedBy::job, of_job) << s.name;
  }
}

}  // namespace
}  // namespace redco

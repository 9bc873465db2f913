// Checks of a job without running it.
#include "commands/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/error_text.h"
#include "support/jobs.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using test::job_of;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::ordered_json;
using Words = std::vector<std::string>;

Words words(const Words& more) {
  Words all = {"model.arch=gpt2", "model.tokenizer=bytes", "model.n_layer=1",
               "model.n_embd=8",  "model.n_head=2",        "model.n_positions=16"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}
Validation validated(const Words& more) { return validate_job({}, words(more)); }

TEST(Validate, EachProblemHasItsOwnMessage) {
  EXPECT_EQ(validated({"train.sed=1", "train.schedule=sine"}).problems.size(), 2u);
  EXPECT_THAT(validated({"train.momentum=0.9", "data.packing=false"}).problems,
              ElementsAre(HasSubstr("data.packing"), HasSubstr("train.momentum")));
  EXPECT_THAT(validated({"model.n_head=3"}).problems, ElementsAre(HasSubstr("n_head")));
  EXPECT_THAT(validated({"data.max_length=17"}).problems,
              ElementsAre(HasSubstr("data.max_length=17 (override 'data.max_length=17')")));
  // Contents of a file are checked by the run.
  EXPECT_THAT(error_text<ContentsError>([] { validated({"model.vocab_size=100"}); }),
              HasSubstr("the model's embedding has 100 rows"));
}

TEST(Validate, AssumptionsAndMissingFilesAreListed) {
  const Validation v = validated({"parallel.n_model_shards=2", "data.train=[builtin:chat, nowhere.jsonl]"});
  EXPECT_THAT(v.problems, IsEmpty());
  EXPECT_EQ(v.n_ranks, 2);
  EXPECT_EQ(v.mp, 2);
  EXPECT_THAT(v.assumed, Contains(HasSubstr("data.max_length=16: the model's positions")));
  EXPECT_THAT(v.assumed, Contains(HasSubstr("parallel.n_ranks=2: n_model_shards")));
  EXPECT_THAT(v.not_checked, ElementsAre("data: nowhere.jsonl is not on this machine"));
  const Validation given =
      validated({"parallel.n_ranks=1", "data.max_length=8", "train.global_batch_size=4"});
  EXPECT_THAT(given.assumed, IsEmpty());
  EXPECT_EQ(given.global_batch, 4);
  // The number of ranks is in a hostfile.
  const Validation hostfile = validated({"parallel.hostfile=nowhere"});
  EXPECT_EQ(hostfile.n_ranks, 0);
  EXPECT_THAT(hostfile.not_checked, Contains(HasSubstr("parallel.hostfile is read")));
  // The model is not on this machine.
  const Validation elsewhere = validate_job({}, {"model.path=/nowhere/gpt2"});
  EXPECT_THAT(elsewhere.problems, IsEmpty());
  EXPECT_EQ(elsewhere.parameters, 0);
  EXPECT_THAT(elsewhere.not_checked, Contains(HasSubstr("model.path=/nowhere/gpt2")));
}

TEST(Validate, ASharedObjectMustExist) {
  EXPECT_THAT(
      validated({"pipeline=./none.so"}).problems,
      ElementsAre("[pipeline] ./none.so does not exist. Set pipeline to a shared object or a built-in "
                  "pipeline"));
  EXPECT_THAT(
      validated({"plugins=[./none.so]"}).problems,
      ElementsAre("[plugins] ./none.so does not exist. Set plugins to shared objects or Python files"));
}

TEST(Validate, JsonHasNullForUnknownValues) {
  const Json bad = Json::parse(to_json(validated({"train.sed=1"})));
  EXPECT_EQ(bad.at("ok"), false);
  EXPECT_TRUE(bad.at("mesh").is_null());
  EXPECT_TRUE(bad.at("parameters").is_null());
  const Json good = Json::parse(to_json(validated({})));
  EXPECT_EQ(good.at("ok"), true);
  EXPECT_EQ(good.at("mesh"), Json::parse(R"({"n_ranks": 1, "dp": 1, "mp": 1})"));
  EXPECT_THAT(to_text(validated({})), ::testing::StartsWith("ok\n"));
}

TEST(Preflight, ThrowsTheErrorsOfTheRunBeforeWeightsAreRead) {
  const test::TempDir dir;
  test::spill(dir / "a.txt", "abc\n");
  const auto before = [&](const Words& more, JobUse use = JobUse::train) {
    return usage_error([&] { preflight(job_of("", words(more)), use); });
  };
  const Words train = {"data.train=" + (dir / "a.txt"), "train.global_batch_size=1"};
  EXPECT_EQ(before(train), "no error");
  EXPECT_THAT(before({"data.train=" + (dir / "b.txt")}), HasSubstr("b.txt"));
  EXPECT_THAT(before({"model.tokenizer=" + (dir / "none")}), HasSubstr("none"));
  EXPECT_EQ(before({"predict.prompt=x"}, JobUse::predict), "no error");
  EXPECT_THAT(before({"predict.input=" + (dir / "in.jsonl")}, JobUse::predict), HasSubstr("in.jsonl"));
  EXPECT_THAT(before({"pipeline=" + (dir / "mine.so")}), HasSubstr("mine.so"));
}

}  // namespace
}  // namespace redco

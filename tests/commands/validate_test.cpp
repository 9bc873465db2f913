// Checks of a job without running it.
#include "commands/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/syscalls.h"
#include "commands/plan_job.h"
#include "gguf/folder.h"
#include "plan/report.h"
#include "support/error_text.h"
#include "support/jobs.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using test::job_of;
using ::testing::AllOf;
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

// A copy of a fixture whose config.json has other settings.
class ChangedModel {
 public:
  ChangedModel(const std::string& fixture, const Json& changes) {
    std::filesystem::copy(std::string(REDCO_FIXTURES) + "/" + fixture, dir_ / "model");
    Json config = Json::parse(test::slurp(path() + "/config.json"));
    config.update(changes);
    test::spill(path() + "/config.json", config.dump());
  }
  std::string path() const { return dir_ / "model"; }

 private:
  test::TempDir dir_;
};
Words training_of(const std::string& folder) {
  return {"model.path=" + folder, "model.tokenizer=bytes", "train.global_batch_size=1"};
}

// The sentences are those of the load.
TEST(Validate, NamesAndShapesOfWeightsAreCheckedByTheHeadersOfTheFiles) {
  const auto refused = [](const std::string& folder) {
    const std::string text = error_text<ContentsError>([&] { validate_job({}, training_of(folder)); });
    EXPECT_EQ(text, error_text<ContentsError>([&] { plan_job(job_of("", training_of(folder))); }));
    return text;
  };
  const ChangedModel more("gpt2", {{"n_layer", 3}, {"n_positions", 100}});
  EXPECT_THAT(refused(more.path()),
              AllOf(HasSubstr("of the model's tensors are missing: transformer.h.2."),
                    HasSubstr("transformer.wpe.weight has shape"), HasSubstr("(100, ")));
  const ChangedModel fewer("gpt2", {{"n_layer", 1}});
  EXPECT_THAT(refused(fewer.path()), HasSubstr("has no such parameters: transformer.h.1."));
  // A head for a new task, an adapter, rows for more tokens.
  const std::string fixtures = REDCO_FIXTURES;
  for (const Words& good :
       {Words{"model.path=" + fixtures + "/bert-mlm", "pipeline=classification"},
        Words{"model.path=" + fixtures + "/lora-gpt2", "model.tokenizer=bytes"},
        Words{"model.path=" + fixtures + "/gpt2", "model.tokenizer=bytes", "train.lora.rank=2"},
        Words{"model.path=" + fixtures + "/llama-sharded", "model.tokenizer=bytes"},
        Words{"model.path=" + fixtures + "/gpt_oss-mxfp4"},
        Words{"model.path=" + fixtures + "/t5", "model.tokenizer=bytes", "pipeline=seq2seq"}}) {
    const Validation v = validate_job({}, good);
    EXPECT_THAT(v.problems, IsEmpty()) << good[0];
    EXPECT_THAT(v.not_checked, IsEmpty()) << good[0];
    EXPECT_GT(v.parameters, 0) << good[0];
  }
}

TEST(Validate, AFolderWithAConfigOnlyHasNoWeightsToCheck) {
  const ChangedModel bare("gpt2", Json::object());
  std::filesystem::remove(bare.path() + "/model.safetensors");
  std::filesystem::remove(bare.path() + "/expected.safetensors");
  const Validation v = validate_job({}, training_of(bare.path()));
  EXPECT_THAT(v.problems, IsEmpty());
  EXPECT_THAT(v.not_checked, ElementsAre(HasSubstr("the weights: " + bare.path() + " has none")));
  EXPECT_THAT(plan_job(job_of("", training_of(bare.path()))).warnings,
              Contains(HasSubstr("has no weights, so their names and shapes are not checked")));
}

// Of a hub folder and of a GGUF file, whose folder is in the user's cache.
TEST(Validate, EachCommandReadsAndParsesTheModelsConfigOnce) {
  const test::TempDir dir;
  setenv("XDG_CACHE_HOME", dir.path().c_str(), 1);
  test::spill(dir / "a.txt", "abc\n");
  struct Count {
    int reads = 0;
    i64 parses = 0;
    bool operator==(const Count&) const = default;
  };
  const auto count = [](const std::function<void()>& command) {
    int n = 0;
    const i64 before = ConfigJson::parses();
    sys::set_hook([&](const sys::Call& call) {
      n += call.op == sys::Op::open && !call.creates && call.path.ends_with("/config.json");
      return sys::Verdict{};
    });
    command();
    sys::set_hook({});
    return Count{n, ConfigJson::parses() - before};
  };
  const Count once{1, 1};
  const std::string fixtures = REDCO_FIXTURES;
  for (const std::string& model : {fixtures + "/gpt2", fixtures + "/gguf/gpt2.gguf"}) {
    Words words = training_of(gguf::folder_of(model));
    words.push_back("data.train=" + (dir / "a.txt"));
    words.push_back("predict.prompt=x");
    words.push_back("train.lora.rank=1");
    words.push_back("model.resize_embeddings=true");
    EXPECT_TRUE(count([&] { validate_job({}, words); }) == once) << model;
    EXPECT_TRUE(count([&] { plan_job(job_of("", words)); }) == once) << model;
    EXPECT_TRUE(count([&] { preflight(job_of("", words), JobUse::train); }) == once) << model;
    EXPECT_TRUE(count([&] { preflight(job_of("", words), JobUse::predict); }) == once) << model;
  }
  unsetenv("XDG_CACHE_HOME");
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

// From a given job to the job of a command that uses a trained model; tests/cli/trained_model_test.cpp does
// it with trainings.
#include "assembly/trained_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/error_text.h"
#include "support/jobs.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using test::job_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

const std::string kGpt2 = REDCO_FIXTURES "/gpt2";
const std::string kLora = REDCO_FIXTURES "/lora-gpt2";

ModelSettings model_of(const Words& words) {
  return trained_job(job_of("", words), Weights::needed).job.model;
}
std::string refused(const Words& words) {
  return usage_error([&] { model_of(words); });
}

TEST(TrainedJob, AFolderWithoutASavedJobSuppliesItsWeightsAlone) {
  const Words words = {"predict.checkpoint=" + kGpt2, "model.tokenizer=bytes", "model.arch=gpt2",
                       "model.n_embd=32", "data.max_length=7"};
  const JobConfig job = trained_job(job_of("", words), Weights::needed).job;
  EXPECT_EQ(job.model.path, kGpt2);
  EXPECT_EQ(job.model.tokenizer, "bytes");
  EXPECT_EQ(job.model.config.at("n_embd"), "32");
  EXPECT_EQ(job.data.max_length, 7);
  EXPECT_EQ(job.predict.checkpoint, kGpt2);
}

TEST(TrainedJob, AnAdaptersBaseIsItsOwnUnlessTheJobNamesOne) {
  const ModelSettings own = model_of({"predict.checkpoint=" + kLora});
  EXPECT_EQ(own.path, kLora);
  EXPECT_FALSE(own.adapter);
  const ModelSettings moved = model_of({"predict.checkpoint=" + kLora, "model.path=" + kGpt2});
  EXPECT_EQ(moved.path, kGpt2);
  EXPECT_EQ(moved.adapter, kLora);
}

TEST(TrainedJob, WeightsMustComeFromSomewhere) {
  const test::TempDir workdir;
  const std::string here = "workdir=" + workdir.path();
  EXPECT_THAT(refused({here}), AllOf(HasSubstr(here + " (override"), HasSubstr("/checkpoints does not exist"),
                                     HasSubstr("model.random=true")));
  EXPECT_THAT(refused({here, "model.path=" + kGpt2}), HasSubstr("workdir=~ for the weights of model.path"));
  EXPECT_THAT(refused({"model.preset=gpt2"}), HasSubstr("the job names no weights"));
  EXPECT_THAT(
      refused({"predict.checkpoint=last"}),
      HasSubstr("predict.checkpoint=last (override 'predict.checkpoint=last') is a pointer of a workdir"));
  EXPECT_THAT(refused({"predict.checkpoint=no/where"}), HasSubstr("no such folder"));
  EXPECT_THAT(refused({"predict.checkpoint=" + kGpt2, "model.random=true"}),
              HasSubstr("asks for random weights"));
  EXPECT_EQ(model_of({"model.path=" + kGpt2}).path, kGpt2);
  EXPECT_TRUE(model_of({here, "model.preset=gpt2", "model.random=true"}).random);
}

TEST(TrainedJob, OptionalWeightsMayBeMissing) {
  const test::TempDir workdir;
  const JobConfig job = job_of("", {"workdir=" + workdir.path(), "predict.checkpoint=best-loss"});
  EXPECT_EQ(trained_job(job, Weights::optional).job.predict.checkpoint, "best-loss");
  EXPECT_FALSE(trained_job(job_of(""), Weights::optional).job.model.path);
}

}  // namespace
}  // namespace redco

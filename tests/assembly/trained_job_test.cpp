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

const std::string kGpt2Folder = REDCO_FIXTURES "/gpt2";
const std::string kLoraFolder = REDCO_FIXTURES "/lora-gpt2";

ModelSettings model_of(const Words& words) {
  return trained_job(job_of("", words), Weights::needed).job.model;
}
std::string refused_with(const Words& words) {
  return usage_error([&] { model_of(words); });
}

TEST(TrainedJob, AFolderWithoutASavedJobSuppliesItsWeightsAlone) {
  const Words words = {"predict.checkpoint=" + kGpt2Folder, "model.tokenizer=bytes", "model.arch=gpt2",
                       "model.n_embd=32", "data.max_length=7"};
  const JobConfig job = trained_job(job_of("", words), Weights::needed).job;
  EXPECT_EQ(job.model.path, kGpt2Folder);
  EXPECT_EQ(job.model.tokenizer, "bytes");
  EXPECT_EQ(job.model.config.at("n_embd"), "32");
  EXPECT_EQ(job.data.max_length, 7);
  EXPECT_EQ(job.predict.checkpoint, kGpt2Folder);
}

TEST(TrainedJob, AnAdaptersBaseIsItsOwnUnlessTheJobNamesOne) {
  const ModelSettings own = model_of({"predict.checkpoint=" + kLoraFolder});
  EXPECT_EQ(own.path, kLoraFolder);
  EXPECT_FALSE(own.adapter);
  const ModelSettings moved = model_of({"predict.checkpoint=" + kLoraFolder, "model.path=" + kGpt2Folder});
  EXPECT_EQ(moved.path, kGpt2Folder);
  EXPECT_EQ(moved.adapter, kLoraFolder);
}

TEST(TrainedJob, WeightsMustComeFromSomewhere) {
  const test::TempDir workdir;
  const std::string here = "workdir=" + workdir.path();
  EXPECT_THAT(refused_with({here}),
              AllOf(HasSubstr(here + " (override"), HasSubstr("/checkpoints does not exist"),
                    HasSubstr("model.random=true")));
  EXPECT_THAT(refused_with({here, "model.path=" + kGpt2Folder}),
              HasSubstr("workdir=null for the weights of model.path"));
  EXPECT_THAT(refused_with({"model.preset=gpt2"}), HasSubstr("the job names no weights"));
  EXPECT_THAT(
      refused_with({"predict.checkpoint=last"}),
      HasSubstr("predict.checkpoint=last (override 'predict.checkpoint=last') is a pointer of a workdir"));
  EXPECT_THAT(refused_with({"predict.checkpoint=no/where"}), HasSubstr("no such folder"));
  EXPECT_THAT(refused_with({"predict.checkpoint=" + kGpt2Folder, "model.random=true"}),
              HasSubstr("asks for random weights"));
  EXPECT_EQ(model_of({"model.path=" + kGpt2Folder}).path, kGpt2Folder);
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

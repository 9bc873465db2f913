// Folders in data.train and data.eval.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_text.h"
#include "support/jobs.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using test::job_of;
using test::spill;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ExpandFolders : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"texts", "images", "images/cat", "table", "photos"})
      std::filesystem::create_directory(dir_ / name);
    for (const char* name : {"texts/b.txt", "texts/a.txt.zst", "images/notes.txt", "images/cat/1.png",
                             "table/all.csv", "table/1.png", "photos/1.png", "photos/readme.txt", "one.txt"})
      spill(dir_ / name, "");
  }
  std::vector<std::string> train(const std::string& pipeline, const std::string& folder) {
    JobConfig job = job_of("pipeline: " + pipeline + "\ndata: {train: " + dir_ / folder + "}\n");
    expand_data_folders(job, JobUse::validate);
    return job.data.train;
  }
  test::TempDir dir_{test::TempDir::in_memory};
};

TEST_F(ExpandFolders, AFolderBecomesItsFiles) {
  for (const char* pipeline : {"lm", "seq2seq", "captioning", "classification", "./own.so"})
    EXPECT_THAT(train(pipeline, "texts"), ElementsAre(dir_ / "texts/a.txt.zst", dir_ / "texts/b.txt"))
        << pipeline;
  EXPECT_THAT(train("lm", "texts/"), ElementsAre(dir_ / "texts/a.txt.zst", dir_ / "texts/b.txt"));
  EXPECT_THAT(train("lm", "images"), ElementsAre(dir_ / "images/notes.txt"));
  EXPECT_THAT(train("lm", "none"), ElementsAre(dir_ / "none"));  // check_files() reports it
}

TEST_F(ExpandFolders, FoldersOfImagesStay) {
  for (const char* pipeline : {"classification", "regression", "maml", "./own.so"}) {
    EXPECT_THAT(train(pipeline, "images"), ElementsAre(dir_ / "images")) << pipeline;
    EXPECT_THAT(train(pipeline, "images/cat"), ElementsAre(dir_ / "images/cat")) << pipeline;
    EXPECT_THAT(train(pipeline, "table"), ElementsAre(dir_ / "table/all.csv")) << pipeline;
  }
}

TEST_F(ExpandFolders, TablesBelow) {
  std::filesystem::create_directories(dir_ / "hub/data");
  for (const char* name : {"hub/data/train-00000.parquet", "hub/data/test-00000.parquet", "hub/README.md"})
    spill(dir_ / name, "");
  for (const char* pipeline : {"lm", "dpo", "classification", "captioning"})
    EXPECT_THAT(train(pipeline, "hub"), ElementsAre(dir_ / "hub/data/train-00000.parquet")) << pipeline;
  EXPECT_THAT(train("./own.so", "hub"), ElementsAre(dir_ / "hub"));  // such a pipeline gets the folder
}

// A user's pipeline may read either.
TEST_F(ExpandFolders, TextsAmongImages) {
  for (const char* pipeline : {"classification", "regression", "maml"})
    EXPECT_THAT(train(pipeline, "photos"), ElementsAre(dir_ / "photos")) << pipeline;
  EXPECT_THAT(train("lm", "photos"), ElementsAre(dir_ / "photos/readme.txt"));
  EXPECT_THAT(
      usage_error([&] { train("./own.so", "photos"); }),
      HasSubstr("has images and texts, such as 1.png and readme.txt, expected one of the two. To read the "
                "images, remove the texts; to read the texts, set data.format: text"));
}

TEST_F(ExpandFolders, FilesOfAListHaveThePlaceOfTheirFolder) {
  JobConfig job = job_of("data:\n  train:\n  - " + dir_ / "one.txt" + "\n  - " + dir_ / "texts" + "\n  - " +
                         dir_ / "one.txt" + "\n  eval: builtin:markov\n");
  expand_data_folders(job, JobUse::validate);
  EXPECT_THAT(job.data.train, ElementsAre(dir_ / "one.txt", dir_ / "texts/a.txt.zst", dir_ / "texts/b.txt",
                                          dir_ / "one.txt"));
  EXPECT_EQ(job.origins.where("data.train[2]"), "job.yaml:4:5");
  EXPECT_EQ(job.origins.where("data.train[3]"), "job.yaml:5:5");
  EXPECT_THAT(job.data.eval, ElementsAre("builtin:markov"));
}

TEST_F(ExpandFolders, AllProblemsAreReported) {
  JobConfig job =
      job_of("data:\n  train: " + dir_ / "images/cat" + "\n  eval: [" + dir_ / "images/cat" + "]\n");
  try {
    expand_data_folders(job, JobUse::train);
    ADD_FAILURE();
  } catch (const UsageError& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("job.yaml:2:10: data.train[0]: the folder "),
                                HasSubstr("\njob.yaml:3:10: data.eval[0]: the folder ")));
  }
}

}  // namespace
}  // namespace redco

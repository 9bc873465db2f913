// Pipes among the data files.
#include "job/spool_pipes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "support/error_text.h"
#include "support/jobs.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using test::job_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

JobConfig job_with(const test::TempDir& dir, const std::string& data) {
  return job_of("data: {cache: " + (dir / "cache") + ", " + data + "}\n");
}

TEST(SpoolPipes, APipeBecomesAFile) {
  const test::TempDir dir{test::TempDir::in_memory};
  const std::string pipe = dir / "pipe", text = "{\"text\": \"a\"}\n";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(is_pipe(pipe));
  for (const char* path : {"-", "/dev/stdin", "/dev/fd/63"}) EXPECT_TRUE(is_pipe(path)) << path;
  test::spill(dir / "plain.jsonl", text);
  EXPECT_FALSE(is_pipe(dir / "plain.jsonl"));
  EXPECT_FALSE(is_pipe(dir / "none.jsonl"));
  std::thread writer([&] { std::ofstream(pipe) << text; });
  JobConfig job =
      job_with(dir, "format: jsonl, train: [" + (dir / "plain.jsonl") + ", " + pipe + "], eval: " + pipe);
  // Named twice.
  EXPECT_THAT(usage_error([&] { spool_pipes(job, JobUse::train); }),
              HasSubstr("is named twice, but it can be read only once"));
  writer.join();
  // It was read once; loading the job again gives the same file.
  for (int i = 0; i < 2; ++i) {
    job = job_with(dir, "format: jsonl, train: [" + (dir / "plain.jsonl") + ", " + pipe + "]");
    spool_pipes(job, JobUse::train);
    EXPECT_THAT(job.data.train, ElementsAre(dir / "plain.jsonl", StartsWith(dir / "cache/piped-")));
    EXPECT_EQ(test::slurp(job.data.train[1]), text);
    EXPECT_TRUE(job.data.train[1].ends_with(".jsonl"));
  }
  // Commands that read no data leave it.
  job = job_with(dir, "train: " + pipe);
  spool_pipes(job, JobUse::validate);
  EXPECT_THAT(job.data.train, ElementsAre(pipe));
}

TEST(SpoolPipes, WithoutFormatOrBytes) {
  const test::TempDir dir{test::TempDir::in_memory};
  const std::string pipe = dir / "empty";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  JobConfig job = job_with(dir, "train: " + pipe);
  EXPECT_THAT(
      usage_error([&] { spool_pipes(job, JobUse::train); }),
      HasSubstr("data.train[0]: the pipe " + pipe + " has no name that tells its format. Set data.format"));
  std::thread writer([&] { std::ofstream(pipe).flush(); });
  job = job_with(dir, "format: text, train: " + pipe);
  EXPECT_THAT(error_text<ContentsError>([&] { spool_pipes(job, JobUse::train); }), HasSubstr("has no bytes"));
  writer.join();
}

}  // namespace
}  // namespace redco

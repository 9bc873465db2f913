// Job files that include others.
#include "config/include.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "config/bind.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using test::TempDir;
using ::testing::HasSubstr;
using ::testing::Not;

struct Train {
  i64 seed = 0, steps = 0, rows = 0;
  void visit(SettingsVisitor& v) {
    v.field("seed", seed, "a");
    v.field("steps", steps, "b");
    v.field("rows", rows, "c");
  }
};
struct Job {
  Train train;
  void visit(SettingsVisitor& v) { v.section("train", train, "Training"); }
};

class Include : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = std::filesystem::current_path();
    std::filesystem::current_path(dir_.path());
  }
  void TearDown() override { std::filesystem::current_path(before_); }
  void file(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(dir_ / name).parent_path());
    test::spill(dir_ / name, text);
  }
  Origins load(const std::vector<std::string>& files, const std::vector<std::string>& overrides = {}) {
    job_ = {};
    return load_settings(settings_of(job_), read_yaml_files(files), overrides);
  }
  std::string refused(const std::string& name) {
    try {
      load({name});
    } catch (const UsageError& e) {
      return e.what();
    }
    return "accepted";
  }
  TempDir dir_;
  std::filesystem::path before_;
  Job job_;
};

TEST_F(Include, TheIncluderWinsAndLaterIncludesWinOverEarlierOnes) {
  file("base/a.yaml", "train: {seed: 1, steps: 1, rows: 1}\n");
  file("base/b.yaml", "include: a.yaml\ntrain: {seed: 2, steps: 2}\n");
  file("c.yaml", "train:\n  steps: 3\n");
  file("job.yaml", "include: [base/b.yaml, c.yaml]\ntrain: {seed: 4}\n");
  const Origins o = load({"job.yaml"});
  EXPECT_EQ(job_.train.seed, 4);
  EXPECT_EQ(job_.train.steps, 3);
  EXPECT_EQ(job_.train.rows, 1);
  EXPECT_EQ(o.where("train.seed"), "job.yaml:2:15");
  EXPECT_EQ(o.where("train.steps"), "c.yaml:2:10 (included from job.yaml:1)");
  EXPECT_EQ(o.where("train.rows"),
            "base/a.yaml:1:34 (included from base/b.yaml:1, included from job.yaml:1)");
  load({"job.yaml"}, {"train.rows=9"});
  EXPECT_EQ(job_.train.rows, 9);
  // The same file twice, on two ways, is no cycle.
  file("two.yaml", "include: [base/a.yaml, base/b.yaml]\n");
  load({"two.yaml"});
  EXPECT_EQ(job_.train.seed, 2);
  file("none.yaml", "include:\ntrain: {seed: 5}\n");
  load({"none.yaml"});
  EXPECT_EQ(job_.train.seed, 5);
}

TEST_F(Include, MistakesNameTheIncludedFile) {
  file("base.yaml", "train:\n  seed: x\n  stpes: 1\n");
  file("job.yaml", "\ninclude: base.yaml\ntrain: {seed: 1}\n");
  EXPECT_EQ(refused("job.yaml"),
            "base.yaml:2:9 (included from job.yaml:2): train.seed: expected an integer, got the text 'x'\n"
            "base.yaml:3:3 (included from job.yaml:2): unknown key train.stpes; did you mean train.steps?");
  file("base.yaml", "a: [\n");
  EXPECT_THAT(refused("job.yaml"), HasSubstr("(included from job.yaml:2): not valid YAML"));
  file("job.yaml", "include: nowhere.yaml\n");
  EXPECT_EQ(refused("job.yaml"),
            "job.yaml:1:10: include: nowhere.yaml does not exist; the path is relative to the folder of "
            "job.yaml");
  for (const char* bad : {"include: 3\n", "include: {a: b}\n", "include: [[a]]\n", "include: ''\n"}) {
    file("job.yaml", bad);
    EXPECT_THAT(refused("job.yaml"), HasSubstr("expected the path of a YAML file")) << bad;
  }
  file("job.yaml", "include: .\n");
  EXPECT_THAT(refused("job.yaml"), HasSubstr("is a folder"));
  file("job.yaml", "include: $REDCO_TEST_UNSET/x.yaml\n");
  EXPECT_THAT(refused("job.yaml"), HasSubstr("job.yaml:1:10: include: '$REDCO_TEST_UNSET/x.yaml'"));
}

TEST_F(Include, CyclesAndDepthAreErrors) {
  file("a.yaml", "include: sub/b.yaml\n");
  file("sub/b.yaml", "include: ../a.yaml\n");
  EXPECT_EQ(refused("a.yaml"),
            "sub/b.yaml:1:10 (included from a.yaml:1): include: a.yaml includes itself, directly or "
            "through other files");
  file("own.yaml", "include: ./own.yaml\n");
  EXPECT_THAT(refused("own.yaml"), HasSubstr("includes itself"));
  for (int i = 0; i < 18; ++i) file(fmt::format("{}.yaml", i), fmt::format("include: {}.yaml\n", i + 1));
  file("18.yaml", "train: {seed: 7}\n");
  load({"2.yaml"});  // 16 levels below it
  EXPECT_EQ(job_.train.seed, 7);
  EXPECT_THAT(refused("1.yaml"), HasSubstr("deeper than 16 levels"));
  // A tree that doubles on each level.
  for (int i = 0; i < 15; ++i)
    file(fmt::format("t{}.yaml", i), fmt::format("include: [t{}.yaml, t{}.yaml]\n", i + 1, i + 1));
  file("t15.yaml", "train: {seed: 7}\n");
  EXPECT_THAT(refused("t0.yaml"), HasSubstr("more than 100 files"));
}

TEST_F(Include, IsAKeyOfFilesAlone) {
  EXPECT_THAT(
      [&] {
        try {
          load({}, {"include=a.yaml"});
        } catch (const UsageError& e) {
          return std::string(e.what());
        }
        return std::string("accepted");
      }(),
      HasSubstr("name the other file on the command line"));
  Job job;
  EXPECT_THROW(load_settings(settings_of(job), {{"text", "include: a.yaml\n"}}, {}), UsageError);
  file("deep.yaml", "train: {include: a.yaml}\n");
  EXPECT_THAT(refused("deep.yaml"), HasSubstr("unknown key train.include"));
}

}  // namespace
}  // namespace redco

// Paths with ~, environment variables and patterns.
#include "config/paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "config/bind.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using test::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PathsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("HOME", "/home/me", 1);
    setenv("REDCO_TEST_A", "/data/a", 1);
    setenv("REDCO_TEST_WILD", (dir_.path() + "/odd[1]").c_str(), 1);
    unsetenv("REDCO_TEST_UNSET");
  }
  static std::string refused(const std::string& path) {
    try {
      return "accepted: " + expand_path(path);
    } catch (const UsageError& e) {
      return e.what();
    }
  }
  TempDir dir_;
};

TEST_F(PathsTest, HomeAndVariablesAreExpanded) {
  EXPECT_EQ(expand_path("~/runs/x"), "/home/me/runs/x");
  EXPECT_EQ(expand_path("~"), "/home/me");
  EXPECT_EQ(expand_path("$REDCO_TEST_A/b"), "/data/a/b");
  EXPECT_EQ(expand_path("${REDCO_TEST_A}b"), "/data/ab");
  EXPECT_EQ(expand_path("x/$REDCO_TEST_A"), "x//data/a");
  EXPECT_EQ(expand_path("a$$b"), "a$b");
  for (const char* same : {"", "runs/x", "a~b", "a/~", "cost$", "$1", "a$-b", "org/name@v1.0"})
    EXPECT_EQ(expand_path(same), same);
}

TEST_F(PathsTest, ErrorsNameThePathAndTheVariable) {
  EXPECT_EQ(refused("$REDCO_TEST_UNSET/x"),
            "'$REDCO_TEST_UNSET/x': the environment variable REDCO_TEST_UNSET is not set; set it (export "
            "REDCO_TEST_UNSET=FOLDER) or write the path");
  EXPECT_THAT(refused("${REDCO_TEST_UNSET}"), HasSubstr("REDCO_TEST_UNSET is not set"));
  for (const char* open : {"${REDCO_TEST_A", "${}", "${A-b}"})
    EXPECT_THAT(refused(open), HasSubstr("expected ${NAME} with a closing brace"));
  EXPECT_THAT(refused("~other/x"), HasSubstr("only ~/ is expanded"));
}

TEST_F(PathsTest, PatternsGiveSortedFiles) {
  for (const char* name : {"b.txt", "a.txt", "B.txt", "c.jsonl", "odd[1]", "odd1"})
    test::spill(dir_ / name, "x");
  const auto in = [&](const std::string& name) { return dir_.path() + "/" + name; };
  EXPECT_THAT(expand_files(in("*.txt")), ElementsAre(in("B.txt"), in("a.txt"), in("b.txt")));
  EXPECT_THAT(expand_files(in("[ab].txt")), ElementsAre(in("a.txt"), in("b.txt")));
  EXPECT_THAT(expand_files(in("a.txt")), ElementsAre(in("a.txt")));
  EXPECT_THAT(expand_files(in("nowhere.txt")), ElementsAre(in("nowhere.txt")));
  EXPECT_THAT(expand_files(in("odd[1]")), ElementsAre(in("odd[1]")));  // a file of this name exists
  test::spill(dir_ / "odd[1].a", "x");
  EXPECT_THAT(expand_files("$REDCO_TEST_WILD.*"), ElementsAre(in("odd[1].a")));
  EXPECT_THROW(expand_files(in("*.csv")), UsageError);
  // Ranges of numbers in braces; the files need not exist.
  EXPECT_THAT(expand_files(in("x-{08..10}.tar")),
              ElementsAre(in("x-08.tar"), in("x-09.tar"), in("x-10.tar")));
  EXPECT_THAT(expand_files("{a}{1..2}{0..1}"), ElementsAre("{a}10", "{a}11", "{a}20", "{a}21"));
  EXPECT_THAT(expand_files("{a..b}{1.2}"), ElementsAre("{a..b}{1.2}"));
  EXPECT_THROW(expand_files("{2..1}"), UsageError);
  EXPECT_THROW(expand_files("{0..999999999}"), UsageError);
  EXPECT_THAT(expand_files("builtin:chat"), ElementsAre("builtin:chat"));
}

struct JobOfPaths {
  std::optional<std::string> workdir, note;
  std::vector<std::string> train;
  std::string pipeline = "lm";
  void visit(SettingsVisitor& v) {
    v.field("workdir", workdir, "a folder").path();
    v.field("note", note, "no path");
    v.field("train", train, "files").path().one_or_more();
    v.field("pipeline", pipeline, "a name or a path").looks_like("a name or a path").path();
  }
};

TEST_F(PathsTest, SettingsThatArePathsAreExpandedOnce) {
  for (const char* name : {"2.txt", "1.txt"}) test::spill(dir_ / name, "x");
  JobOfPaths job;
  const Origins o =
      load_settings(settings_of(job),
                    {{"job.yaml", "workdir: $REDCO_TEST_A/x\nnote: $REDCO_TEST_A\ntrain: [first, '" +
                                      dir_.path() + "/*.txt', last]\npipeline: ~/mine.so\n"}},
                    {}, Paths::expanded);
  EXPECT_EQ(job.workdir, "/data/a/x");
  EXPECT_EQ(job.note, "$REDCO_TEST_A");
  EXPECT_EQ(job.pipeline, "/home/me/mine.so");
  EXPECT_THAT(job.train, ElementsAre("first", dir_.path() + "/1.txt", dir_.path() + "/2.txt", "last"));
  EXPECT_EQ(o.where("train[2]"), "job.yaml:3:16");
  EXPECT_EQ(o.where("train[3]").substr(0, 11), "job.yaml:3:");
  EXPECT_NE(o.where("train[3]"), o.where("train[2]"));

  // A bare ~ is null, of a text too.
  load_settings(settings_of(job), {}, {"workdir=~"}, Paths::expanded);
  EXPECT_FALSE(job.workdir);

  // Ranks do not expand the paths of a resolved job again.
  JobOfPaths again;
  load_settings(settings_of(again), {{"dump", "workdir: a$REDCO_TEST_UNSET\n"}}, {});
  EXPECT_EQ(again.workdir, "a$REDCO_TEST_UNSET");
}

TEST_F(PathsTest, ProblemsComeTogetherWithTheOthers) {
  JobOfPaths job;
  const auto refusal = [&](const std::string& text,
                           const std::vector<std::string>& overrides) -> std::string {
    try {
      load_settings(settings_of(job), {{"job.yaml", text}}, overrides, Paths::expanded);
    } catch (const UsageError& e) {
      return e.what();
    }
    return "accepted";
  };
  const std::string both =
      refusal("workdir: $REDCO_TEST_UNSET/x\ntrian: a\ntrain: ['" + dir_.path() + "/*.csv']\n", {});
  EXPECT_THAT(both, HasSubstr("job.yaml:1:10: workdir: '$REDCO_TEST_UNSET/x': the environment variable"));
  EXPECT_THAT(both, HasSubstr("job.yaml:2:1: unknown key trian; did you mean train?"));
  EXPECT_THAT(both, HasSubstr("job.yaml:3:9: train[0]: "));
  EXPECT_THAT(both, HasSubstr("matches no file"));
  EXPECT_EQ(std::count(both.begin(), both.end(), '\n'), 2);
  // A value that an override replaces is not expanded.
  EXPECT_EQ(refusal("workdir: $REDCO_TEST_UNSET/x\n", {"workdir=here"}), "accepted");
}

}  // namespace
}  // namespace redco

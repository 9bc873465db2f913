// The file of predictions: a stopped run continues it, a run with other settings or prompts is an error.
#include "commands/predictions_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/error_text.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using test::slurp;
using test::spill;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const char* const kSettings = R"({"predict": {"seed": 1, "top_k": null}, "model": {"weights": "abc"}})";

class Predictions : public ::testing::Test {
 protected:
  std::string refused(const std::string& settings) {
    return usage_error([&] { PredictionsFile(path, settings, false); });
  }
  test::TempDir dir;
  std::string path = dir / "out/p.jsonl";
};

TEST_F(Predictions, AStoppedFileIsContinuedAfterItsLastWholeLine) {
  {
    PredictionsFile f(path, kSettings, false);  // makes the folder
    EXPECT_EQ(f.kept(), 0);
    f.append("{\"id\":0,\"a\":1}\n{\"id\":1,\"a\":2}\n");
    f.append("");
    EXPECT_EQ(slurp(path), "{\"id\":0,\"a\":1}\n{\"id\":1,\"a\":2}\n");  // on the disk already
  }
  spill(path, slurp(path) + "{\"id\":2,\"a\"");  // as if killed inside a line
  PredictionsFile f(path, kSettings, false);
  EXPECT_EQ(f.kept(), 2);
  f.check(0, "{\"id\":0}", "prompt 1");
  f.check(1, "{\"id\":1}", "prompt 2");
  f.append("{\"id\":2,\"a\":3}\n");
  EXPECT_EQ(slurp(path), "{\"id\":0,\"a\":1}\n{\"id\":1,\"a\":2}\n{\"id\":2,\"a\":3}\n");
}

TEST_F(Predictions, AnErrorNamesTheLineOfAnotherPrompt) {
  PredictionsFile(path, kSettings, false).append("{\"id\":10,\"a\":1}\n{\"id\":2,\"a\":1}\n");
  PredictionsFile f(path, kSettings, false);
  // A head that is a prefix of another one does not match.
  EXPECT_THAT(usage_error([&] { f.check(0, "{\"id\":1}", "prompt 1 of in.jsonl"); }),
              HasSubstr("p.jsonl:1 does not answer prompt 1 of in.jsonl"));
  f.check(1, "{\"id\":2}", "prompt 2");
}

TEST_F(Predictions, OtherSettingsAreAnErrorThatChangesNoFile) {
  PredictionsFile(path, kSettings, false).append("{\"id\":0,\"a\":1}\n");
  const std::string before = slurp(path + ".settings.json");
  EXPECT_THAT(refused(R"({"predict": {"seed": 2, "top_k": null}, "model": {"weights": "abc"}})"),
              AllOf(HasSubstr("predict.seed was 1, is 2"), Not(HasSubstr("weights"))));
  EXPECT_THAT(refused(R"({"predict": {"seed": 1}, "model": {"weights": "abd"}})"),
              AllOf(HasSubstr("predict.top_k was null"), HasSubstr("model.weights was \"abc\", is \"abd\"")));
  EXPECT_EQ(refused(kSettings), "no error");
  EXPECT_EQ(slurp(path), "{\"id\":0,\"a\":1}\n");
  EXPECT_EQ(slurp(path + ".settings.json"), before);

  EXPECT_EQ(PredictionsFile(path, R"({"predict": {"seed": 2}})", true).kept(), 0);
  EXPECT_EQ(slurp(path), "");
  EXPECT_THAT(refused(kSettings), "no error");  // an empty file holds no predictions of other settings
}

TEST_F(Predictions, AFileOfAnotherProgramIsKept) {
  std::filesystem::create_directories(dir / "out");
  spill(path, "mine\n");
  EXPECT_THAT(refused(kSettings), HasSubstr("so its settings are unknown"));
  EXPECT_EQ(slurp(path), "mine\n");
  spill(path + ".settings.json", "no JSON");
  EXPECT_THAT(refused(kSettings), HasSubstr("p.jsonl.settings.json can't be read"));
}

TEST_F(Predictions, GzipNamesAndFoldersAreErrors) {
  EXPECT_THAT(usage_error([&] { PredictionsFile(dir / "p.jsonl.gz", kSettings, false); }),
              HasSubstr("Remove .gz"));
  EXPECT_THAT(usage_error([&] { PredictionsFile(dir.path(), kSettings, true); }), HasSubstr("is a folder"));
}

}  // namespace
}  // namespace redco

// Finding and copying the example jobs.
#include "job/shipped_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "support/error_text.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ShippedJobs, AreTheFilesOfConfigs) {
  std::vector<std::string> files, names;
  const std::string root = REDCO_SOURCE_DIR "/configs/";
  for (const auto& e : std::filesystem::recursive_directory_iterator(root))
    if (e.is_regular_file()) {
      const std::string path = e.path().string();
      files.push_back(path.substr(root.size(), path.size() - root.size() - 5));
    }
  for (const ShippedJob& j : shipped_jobs()) {
    names.push_back(j.name);
    EXPECT_EQ(j.text, test::slurp(root + j.name + ".yaml")) << j.name;
    // The summary is one sentence, without the schema line.
    EXPECT_THAT(j.summary, ::testing::EndsWith(".")) << j.name;
    EXPECT_EQ(j.summary.find(". "), std::string::npos) << j.name;
    EXPECT_EQ(j.summary.find("yaml-language-server"), std::string::npos) << j.name;
  }
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_THAT(names, ::testing::UnorderedElementsAreArray(files));
}

TEST(ShippedJobs, AreFoundByShortAndLongNames) {
  for (const char* name : {"lm/gpt2", "lm/gpt2.yaml", "configs/lm/gpt2.yaml", "gpt2"})
    EXPECT_EQ(shipped_job(name).name, "lm/gpt2") << name;
  EXPECT_THAT(usage_error([] { shipped_job("lm/gtp2"); }), HasSubstr("did you mean lm/gpt2?"));
  EXPECT_THAT(usage_error([] { shipped_job("zzzzzzzz"); }), HasSubstr("`redco ls` lists them"));
}

// A name that several jobs share is ambiguous.
TEST(ShippedJobs, TheErrorOfAnAmbiguousNameListsTheJobs) {
  std::map<std::string, std::vector<std::string>> by_last;
  for (const ShippedJob& j : shipped_jobs()) by_last[j.name.substr(j.name.rfind('/') + 1)].push_back(j.name);
  for (const auto& [last, names] : by_last) {
    if (names.size() == 1) {
      EXPECT_EQ(shipped_job(last).name, names[0]);
    } else {
      const std::string message = usage_error([&, last = last] { shipped_job(last); });
      for (const std::string& name : names) EXPECT_THAT(message, HasSubstr(name));
    }
  }
}

TEST(ShippedJobs, ACopyHasTheGivenSchemaLine) {
  const ShippedJob& job = shipped_job("lm/gpt2");
  const std::string with = text_for_user(job, "a/redco.schema.json"), without = text_for_user(job, "");
  EXPECT_THAT(with, StartsWith("# yaml-language-server: $schema=a/redco.schema.json\n"));
  EXPECT_EQ(with, schema_line("a/redco.schema.json") + without);
  EXPECT_EQ(without.find("yaml-language-server"), std::string::npos);
}

}  // namespace
}  // namespace redco

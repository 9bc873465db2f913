// Every shipped job file is valid: its keys, its values, and their combinations.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "job/job_config.h"

namespace redco {
namespace {

std::vector<std::string> shipped() {
  std::vector<std::string> out;
  for (const auto& e : std::filesystem::recursive_directory_iterator(REDCO_SOURCE_DIR "/configs"))
    if (e.is_regular_file()) out.push_back(e.path().string());
  std::sort(out.begin(), out.end());
  return out;
}

class ShippedConfig : public testing::TestWithParam<std::string> {};

TEST_P(ShippedConfig, IsValid) {
  EXPECT_TRUE(GetParam().ends_with(".yaml")) << "configs/ holds job files only";
  const JobConfig job = load_job({GetParam()}, {});
  EXPECT_NO_THROW(check_job(job, JobUse::validate));
  EXPECT_NO_THROW(check_job(job, JobUse::plan));
  // A file with data can be trained without changes; the others need data.
  if (!job.data.train.empty()) {
    EXPECT_NO_THROW(check_job(job, JobUse::train));
  } else {
    EXPECT_NO_THROW(
        check_job(load_job({GetParam()}, {"data.train=my.txt", "workdir=runs/x"}), JobUse::train));
  }
}

INSTANTIATE_TEST_SUITE_P(Configs, ShippedConfig, testing::ValuesIn(shipped()), [](const auto& info) {
  std::string name = info.param.substr(std::string(REDCO_SOURCE_DIR "/configs/").size());
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

TEST(ShippedConfigs, ShippedFilesExist) { EXPECT_GE(shipped().size(), 6u); }

}  // namespace
}  // namespace redco

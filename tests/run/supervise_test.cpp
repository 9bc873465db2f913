#include "run/supervise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/temp_dir.h"

namespace redco {
namespace {

using testing::ElementsAre;

TEST(Supervise, TheFilesOfAModelThatEachHostNeeds) {
  const test::TempDir dir;
  EXPECT_THAT(files_of_model(dir.path()), ElementsAre(dir.path()));
  for (const char* name : {"model.safetensors", "config.json", "README.md", "tokenizer.model"})
    test::spill(dir / name, "x");
  std::filesystem::create_directory(dir / "training");
  EXPECT_THAT(files_of_model(dir.path()),
              ElementsAre(dir / "config.json", dir / "model.safetensors", dir / "tokenizer.model"));
  EXPECT_THAT(files_of_model(dir / "README.md"), ElementsAre(dir / "README.md"));
  for (int i = 0; i < 100; ++i) test::spill(dir / ("shard-" + std::to_string(i) + ".safetensors"), "x");
  EXPECT_EQ(files_of_model(dir.path()).size(), 64u);
}

}  // namespace
}  // namespace redco

// Images in answers become files.
#include "commands/predict_images.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "data/images/image.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using Json = nlohmann::ordered_json;
using test::slurp;

TEST(PredictImages, FilesReplaceDataUris) {
  test::TempDir dir(test::TempDir::in_memory);
  const Image a{1, 2, 3, {1, 2, 3, 4, 5, 6}}, b{2, 1, 1, {7, 8}};
  const std::string answer =
      Json({{"prediction", png_data_uri(a)}, {"score", 1}, {"mask", png_data_uri(b)}}).dump();
  const std::string folder = dir / "new/images";
  const Json saved = Json::parse(save_images(answer, "7-../cat", folder));
  EXPECT_EQ(saved.at("prediction"), folder + "/7-.._cat.png");
  EXPECT_EQ(saved.at("mask"), folder + "/7-.._cat-mask.png");
  EXPECT_EQ(saved.at("score"), 1);
  EXPECT_EQ(slurp(folder + "/7-.._cat.png"), encode_png(a));
  EXPECT_EQ(slurp(folder + "/7-.._cat-mask.png"), encode_png(b));
}

TEST(PredictImages, OtherAnswersAreUnchanged) {
  test::TempDir dir(test::TempDir::in_memory);
  const std::string answer = R"({"prediction":  "data:image/png;base64,no"})";
  EXPECT_EQ(save_images(answer, "0", dir / "images"), answer);
  EXPECT_FALSE(std::filesystem::exists(dir / "images"));
}

}  // namespace
}  // namespace redco

// Images against Pillow and transformers (scripts/make_image_fixtures.py), and hostile bytes.
#include "data/images/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "base/file.h"
#include "data/builtin/drawn_images.h"
#include "data/images/image_preprocess.h"
#include "support/error_text.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

const std::string kFolder = std::string(REDCO_FIXTURES) + "/images/";

std::string bytes_of(const std::string& name) { return read_file(kFolder + name, 1 << 20); }
const Json& expected() {
  static const Json all = Json::parse(bytes_of("expected.json"));
  return all;
}
std::string hex(const std::vector<std::uint8_t>& bytes) {
  std::string out;
  for (const auto b : bytes) out += fmt::format("{:02x}", b);
  return out;
}

// Written images are read again with the same bytes; other texts are not images.
TEST(Images, PngFilesAndDataUrisKeepEveryPixel) {
  for (const i64 channels : {1, 3}) {
    Image image{5, 7, channels, {}};
    for (i64 i = 0; i < 35 * channels; ++i) image.pixels.push_back(static_cast<std::uint8_t>(i * 37 + 11));
    const Image read = decode_image(encode_png(image), "written");
    EXPECT_EQ(read.height, 5);
    EXPECT_EQ(read.width, 7);
    EXPECT_EQ(read.channels, channels);
    EXPECT_EQ(read.pixels, image.pixels);
    const std::string uri = png_data_uri(image);
    EXPECT_EQ(png_of_data_uri(uri), encode_png(image));
    EXPECT_EQ(png_of_data_uri(uri + "!"), std::nullopt);
    EXPECT_EQ(png_of_data_uri(uri.substr(0, 26)), std::nullopt);
    EXPECT_EQ(png_of_data_uri("a text"), std::nullopt);
  }
}

// to_image() inverts the preprocessing, and limits values that no image has.
TEST(Images, ValuesBecomePixelsAgain) {
  Image image{2, 2, 3, {}};
  for (int i = 0; i < 12; ++i) image.pixels.push_back(static_cast<std::uint8_t>(i * 23));
  test::TempDir dir;
  test::spill(dir / "preprocessor_config.json",
              R"({"do_resize": false, "image_mean": [0.1, 0.5, 0.3], "image_std": [0.2, 0.5, 0.4]})");
  for (const std::string& folder : {std::string(), dir.path()}) {
    const ImagePreprocess preprocess(folder, 3, 2, 2);
    const std::vector<float> values = preprocess(image, "x");
    std::vector<double> wide(values.begin(), values.end());
    EXPECT_EQ(preprocess.to_image(wide).pixels, image.pixels);
    wide[0] = 1e30;
    wide[1] = -1e30;
    wide[2] = std::nan("");
    const Image cut = preprocess.to_image(wide);
    EXPECT_EQ(cut.pixels[0], 255);
    EXPECT_EQ(cut.pixels[3], 0);
    EXPECT_EQ(cut.pixels[6], 0);
  }
}

TEST(Image, DecodesLikePillow) {
  for (const auto& [name, e] : expected()["decoded"].items()) {
    SCOPED_TRACE(name);
    const Image image = decode_image(bytes_of(name), name);
    EXPECT_EQ(image.height, e["height"]);
    EXPECT_EQ(image.width, e["width"]);
    EXPECT_EQ(image.channels, e["channels"]);
    EXPECT_EQ(hex(image.pixels), e["pixels"].get<std::string>());
    EXPECT_EQ(hex(to_channels(image, 1).pixels), expected()["grey"][name].get<std::string>());
  }
}

TEST(Image, ResizesLikePillow) {
  for (const Json& e : expected()["resized"]) {
    const std::string name = e["name"];
    SCOPED_TRACE(fmt::format("{} {}", name, e["resample"].dump()));
    const Image image = decode_image(bytes_of(name), name);
    const Image resized =
        resize_image(image, e["height"], e["width"], static_cast<Resample>(e["resample"].get<int>()));
    EXPECT_EQ(hex(resized.pixels), e["pixels"].get<std::string>());
  }
}

// Rescaling and normalizing in another order of fp32 operations differ by an ulp of numbers up to 5: 1e-6.
TEST(Image, PreprocessesLikeTransformers) {
  const test::TempDir dir;
  for (const Json& e : expected()["processed"]) {
    const std::string name = e["name"];
    SCOPED_TRACE(name + " " + e["config"].dump());
    test::spill(dir.path() + "/preprocessor_config.json", e["config"].dump());
    const Shape shape = e["shape"];
    const ImagePreprocess preprocess(dir.path(), shape[0], shape[1], shape[2]);
    const std::vector<float> got = preprocess(decode_image(bytes_of(name), name), name);
    const std::vector<float> want = e["values"];
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-6 * (1 + std::abs(want[i]))) << i;
    // The written file gives the same preprocessing.
    test::spill(dir.path() + "/preprocessor_config.json", preprocess.to_json());
    EXPECT_EQ(
        ImagePreprocess(dir.path(), shape[0], shape[1], shape[2])(decode_image(bytes_of(name), name), name),
        got);
  }
}

TEST(Image, WithoutAConfigMustHaveTheModelsSize) {
  const Image image = decode_image(bytes_of("grey.png"), "x");  // 9 x 13
  const std::vector<float> same = ImagePreprocess("", 3, 9, 13)(image, "x");
  ASSERT_EQ(same.size(), 3u * 9 * 13);
  EXPECT_FLOAT_EQ(same[0], image.pixels[0] / 127.5f - 1);
  EXPECT_EQ(same[117], same[0]);
  EXPECT_THAT(
      error_text<ContentsError>([&] { ImagePreprocess("", 1, 8, 8)(image, "a.png"); }),
      HasSubstr(
          "a.png: the image is 13 pixels wide and 9 high; expected 8 wide and 8 high. data.resize_images=true"));
  EXPECT_EQ(ImagePreprocess("", 1, 8, 8, true)(image, "x").size(), 64u);
}

TEST(Image, UnknownKeysOfPreprocessorConfigsAreErrors) {
  const test::TempDir dir;
  const auto refused = [&](const std::string& json) {
    test::spill(dir.path() + "/preprocessor_config.json", json);
    return error_text<ContentsError>([&] { ImagePreprocess(dir.path(), 3, 8, 8); });
  };
  EXPECT_THAT(refused("[1]"), HasSubstr("preprocessor_config.json: not a JSON object"));
  EXPECT_THAT(refused(R"({"size": 16})"),
              HasSubstr("size=16: expected the 8 x 8 pixels that the model reads"));
  EXPECT_THAT(refused(R"({"size": {"width": 8}})"), HasSubstr("expected height and width, or shortest_edge"));
  EXPECT_THAT(refused(R"({"size": 8, "resample": 9})"), HasSubstr("resample=9: expected 0 to 5"));
  EXPECT_THAT(refused(R"({"size": 8, "image_std": [1, 0, 1]})"), HasSubstr("image_std"));
  EXPECT_THAT(refused(R"({"size": 8, "image_mean": [1, 2]})"), HasSubstr("each of the model's 3 channels"));
  EXPECT_THAT(refused(R"({"size": 8, "do_flip": true})"), HasSubstr("do_flip=true: expected no such key"));
  EXPECT_THAT(refused(R"({"size": 99999999})"), HasSubstr("lengths of 1 to"));
  EXPECT_EQ(refused(R"({"size": 8, "do_pad": false, "image_processor_type": "ViTFeatureExtractor"})"),
            "no error");
}

TEST(Image, BadBytesAreErrorsWithTheReason) {
  const auto refused = [](const std::string& bytes) {
    return error_text<ContentsError>([&] { decode_image(bytes, "here"); });
  };
  EXPECT_THAT(refused(""), HasSubstr("here: the file is empty"));
  EXPECT_THAT(
      refused("BM1234"),
      HasSubstr("here: not an image that redco reads (PNG, JPEG, GIF, WebP): it begins with \"BM1234\""));
  for (const char* name :
       {"rgb.png", "interlaced.png", "rgb.jpg", "progressive.jpg", "rgb.webp", "frames.webp"}) {
    SCOPED_TRACE(name);
    const std::string whole = bytes_of(name);
    EXPECT_THAT(refused(whole.substr(0, whole.size() / 2)), HasSubstr("here: a broken"));
    EXPECT_THAT(refused(whole.substr(0, whole.size() - 1)), HasSubstr("here: a broken"));
  }
  // 65535 x 65535 pixels, and a size that the file's bytes can't reach.
  std::string large = bytes_of("rgb.png");
  large.replace(16, 8, std::string("\0\0\xff\xff\0\0\xff\xff", 8));
  EXPECT_THAT(refused(large), HasSubstr("here"));
  std::string jpeg = bytes_of("rgb.jpg");
  const size_t frame = jpeg.find("\xff\xc0");
  jpeg.replace(frame + 5, 4, "\xea\x60\xea\x60");
  EXPECT_THAT(refused(jpeg),
              HasSubstr("here: an image of 60000 x 60000 pixels; expected at least 1 and at most"));
}

// Any bytes give an image or a ContentsError.
TEST(Image, SurvivesDamage) {
  std::mt19937 random(5);
  for (const auto& [name, e] : expected()["decoded"].items()) {
    const std::string whole = bytes_of(name);
    for (int round = 0; round < 150; ++round) {
      std::string bytes = whole;
      for (int n = 1 + static_cast<int>(random() % 4); n > 0; --n)
        bytes[random() % bytes.size()] = static_cast<char>(random());
      if (random() % 4 == 0) bytes.resize(random() % bytes.size());
      try {
        const Image image = decode_image(bytes, name);
        EXPECT_EQ(static_cast<i64>(image.pixels.size()), image.height * image.width * image.channels);
      } catch (const ContentsError&) {
      }
    }
  }
}

TEST(Image, CropsFromTheMiddle) {
  Image image{2, 3, 1, {1, 2, 3, 4, 5, 6}};
  EXPECT_EQ(center_crop(image, 1, 1).pixels, (std::vector<std::uint8_t>{2}));
  EXPECT_EQ(center_crop(image, 3, 3).pixels, (std::vector<std::uint8_t>{0, 0, 0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(center_crop(image, 2, 4).pixels, (std::vector<std::uint8_t>{0, 1, 2, 3, 0, 4, 5, 6}));
}

// The same name gives the same image; captions describe it.
TEST(DrawnImages, FollowFromTheirNames) {
  const Image a = draw_image("drawn:shapes/3", "x");
  EXPECT_EQ(a.pixels, draw_image("drawn:shapes/3", "x").pixels);
  EXPECT_NE(a.pixels, draw_image("drawn:shapes/4", "x").pixels);
  EXPECT_EQ(a.height, 32);
  EXPECT_EQ(draw_image("drawn:glyphs/3", "x").channels, 1);
  for (int k = 0; k < 20; ++k) {
    const std::string caption = shapes_caption(k);
    EXPECT_THAT(caption, ::testing::AnyOf(HasSubstr(" left of "), HasSubstr(" above ")));
    const Image image = draw_image(fmt::format("drawn:shapes/{}", k), "x");
    const auto has = [&](int r, int g, int b) {
      for (size_t i = 0; i < image.pixels.size(); i += 3)
        if (image.pixels[i] == r && image.pixels[i + 1] == g && image.pixels[i + 2] == b) return true;
      return false;
    };
    EXPECT_EQ(has(210, 40, 40), caption.find("red") != std::string::npos) << caption;
    EXPECT_EQ(has(50, 70, 210), caption.find("blue") != std::string::npos) << caption;
  }
  for (const char* bad :
       {"drawn:shapes", "drawn:shapes/", "drawn:shapes/-1", "drawn:shapes/x", "drawn:cats/1"})
    EXPECT_THAT(error_text<ContentsError>([&] { draw_image(bad, "here"); }),
                HasSubstr("here: unknown image"));
}

}  // namespace
}  // namespace redco

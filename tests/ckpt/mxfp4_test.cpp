// Experts in MXFP4: values, boxes and views of them, and files that contradict themselves.
#include "ckpt/mxfp4.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "ckpt/model_files.h"
#include "ckpt/safetensors_write.h"
#include "support/temp_dir.h"

namespace redco::ckpt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr i64 kE = 2, kOut = 4, kIn = 64;

// Each tensor in its own file.
void write_bytes_tensors(const std::string& folder,
                         const std::vector<std::pair<std::string, Shape>>& tensors) {
  std::vector<TensorPlan> plans;
  for (const auto& [name, shape] : tensors) plans.push_back({name, StoredType::u8, shape});
  const ModelPlan plan = plan_model(plans, 1);
  for (const FilePlan& file : plan.files) {
    auto w = SafetensorsWriter::create(folder, file);
    for (const TensorEntry& e : file.entries) {
      std::vector<i32> values(static_cast<std::size_t>(numel(whole(e.shape))));
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<i32>(e.name.ends_with("_scales") ? 120 + i % 11 : i * 37 % 256);
      w.write(e.name, whole(e.shape), values.data());
    }
    w.commit();
  }
  if (!plan.index_name.empty()) write_file_durable(join_path(folder, plan.index_name), plan.index_json);
}

TEST(Mxfp4, ValuesOfABlock) {
  std::vector<unsigned char> bytes(16, 0);
  bytes[0] = 0x71;  // the lower half first: 0.5, then 6
  bytes[1] = 0xf9;  // -0.5, -6
  const unsigned char scales[] = {128};
  float values[32];
  decode_mxfp4(bytes.data(), scales, 1, values);
  EXPECT_THAT(std::span(values).first(5), ElementsAre(1, 12, -1, -12, 0));
  const unsigned char least[] = {0}, most[] = {255};
  decode_mxfp4(bytes.data(), least, 1, values);
  EXPECT_EQ(values[1], std::ldexp(6.F, -127));
  decode_mxfp4(bytes.data(), most, 1, values);
  EXPECT_TRUE(std::isinf(values[1]));
  EXPECT_EQ(values[4], 0);
}

TEST(Mxfp4, BoxesAndViewsOfBlocksAndScalesInTwoFiles) {
  const test::TempDir dir;
  write_bytes_tensors(dir.path(), {{"experts.x_blocks", {kE, kOut, kIn / 32, 16}},
                                   {"experts.x_scales", {kE, kOut, kIn / 32}}});
  const ModelFiles files = ModelFiles::open(dir.path());
  ASSERT_EQ(files.tensors().size(), 1u);
  const auto& [file, entry] = files.at("experts.x");
  EXPECT_EQ(entry->shape, (Shape{kE, kIn, kOut}));
  const std::vector<float> all = file->read<float>(*entry);
  for (i64 e = 0; e < kE; ++e)
    for (i64 r = 0; r < kOut; ++r)
      for (i64 c = 0; c < kIn; ++c) {
        const i64 byte = ((e * kOut + r) * kIn + c) / 2, scale = ((e * kOut + r) * kIn + c) / 32;
        const int code = (byte * 37 % 256 >> (c % 2 * 4)) & 15;
        const float sizes[] = {0, .5, 1, 1.5, 2, 3, 4, 6};
        const float expected = std::ldexp((code & 8 ? -1.F : 1.F) * sizes[code & 7], 120 + scale % 11 - 127);
        EXPECT_EQ(all[static_cast<std::size_t>((e * kIn + c) * kOut + r)], expected) << e << r << c;
      }
  // Rows 1 and 3 of expert 1, columns 5 to 39, as (row, column).
  const Box box = {{1, 2}, {5, 40}, {0, 2}, {1, 2}};
  std::vector<float> part(70);
  file->read(entry->viewed({kE, kIn, 2, 2}), box, part.data(), Strides{0, 1, 35, 0});
  for (i64 r = 0; r < 2; ++r)
    for (i64 c = 0; c < 35; ++c)
      EXPECT_EQ(part[static_cast<std::size_t>(r * 35 + c)],
                all[static_cast<std::size_t>((kIn + 5 + c) * kOut + 2 * r + 1)]);
}

TEST(Mxfp4, ContradictionsAreErrors) {
  const auto error = [](const std::vector<std::pair<std::string, Shape>>& tensors) -> std::string {
    const test::TempDir dir;
    write_bytes_tensors(dir.path(), tensors);
    try {
      const ModelFiles files = ModelFiles::open(dir.path());
      return fmt::format("{} tensors", files.tensors().size());
    } catch (const ContentsError& e) {
      return e.what();
    }
  };
  EXPECT_THAT(error({{"x_blocks", {2, 3, 2, 16}}, {"x_scales", {2, 3, 1}}}),
              HasSubstr("expected U8 (2, 3, 2)"));
  EXPECT_THAT(error({{"x_blocks", {2, 3, 2, 16}}, {"x_scales", {2, 3, 2}}, {"x", {1}}}),
              HasSubstr("so are its blocks"));
  // Other tensors of these names are left alone.
  EXPECT_EQ(error({{"x_blocks", {2, 3, 2, 8}}, {"x_scales", {2, 3, 2}}}), "2 tensors");
  EXPECT_EQ(error({{"x_blocks", {2, 3, 2, 16}}}), "1 tensors");
}

}  // namespace
}  // namespace redco::ckpt

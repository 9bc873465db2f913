#include "ckpt/safetensors_write.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "base/syscalls.h"
#include "support/temp_dir.h"

namespace redco::ckpt {
namespace {

using test::slurp;
using test::TempDir;
using ::testing::HasSubstr;

std::vector<TensorPlan> plan_of(const SafetensorsFile& f) {
  std::vector<TensorPlan> plan;
  for (const TensorEntry& e : f.entries()) plan.push_back({e.name, e.type, e.shape});
  return plan;
}

// Files of safetensors' own writer, with mixed types: written again, they have the same bytes.
TEST(SafetensorsWrite, RewritesAnotherWritersFilesByteForByte) {
  TempDir dir;
  for (const char* name :
       {"gpt2/expected.safetensors", "gpt2/model.safetensors", "llama-bf16/model.safetensors",
        "opt-fp16/model.safetensors", "opt-fp16/expected.safetensors"}) {
    std::string path = std::string(REDCO_FIXTURES "/") + name;
    SafetensorsFile f = SafetensorsFile::open(path);
    auto w = SafetensorsWriter::create(dir.path(), plan_file("x.safetensors", plan_of(f), f.metadata()));
    for (const TensorEntry& e : f.entries()) {
      if (is_float(e.type)) {
        w.write(e.name, whole(e.shape), f.read<float>(e).data());
      } else {
        w.write(e.name, whole(e.shape), f.read<i64>(e).data());
      }
    }
    w.commit();
    EXPECT_TRUE(slurp(dir / "x.safetensors") == slurp(path)) << name;
  }
}

TEST(SafetensorsWrite, PiecesOfAnySizeInAnyOrderMakeTheSameFile) {
  TempDir dir;
  std::mt19937 gen(3);
  const i64 rows = 61, columns = 47;
  std::vector<float> m(static_cast<size_t>(rows * columns));
  for (size_t i = 0; i < m.size(); ++i) m[i] = static_cast<float>(i) / 8;
  std::vector<Box> tiles;
  for (i64 r = 0; r < rows; r += 10)
    for (i64 c = 0; c < columns; c += 9)
      tiles.push_back({{r, std::min(rows, r + 10)}, {c, std::min(columns, c + 9)}});
  std::shuffle(tiles.begin(), tiles.end(), gen);
  for (StoredType t : {StoredType::f32, StoredType::f64, StoredType::bf16}) {
    FilePlan plan = plan_file("a.safetensors", {{"w", t, {rows, columns}}});
    auto a = SafetensorsWriter::create(dir.path(), plan);
    a.write("w", whole({rows, columns}), m.data());
    a.commit();
    plan.file = "b.safetensors";
    auto b = SafetensorsWriter::create(dir.path(), plan);
    for (const Box& tile : tiles)
      b.write("w", tile, m.data() + tile[0].begin * columns + tile[1].begin, {columns, 1});
    b.commit();
    plan.file = "c.safetensors";
    auto c = SafetensorsWriter::create(dir.path(), plan);
    std::string stored = slurp(dir / "a.safetensors").substr(plan.head.size());
    for (i64 at = 0; at < static_cast<i64>(stored.size()); at += 1001)
      c.write_bytes("w", at, stored.data() + at, std::min<i64>(1001, static_cast<i64>(stored.size()) - at));
    c.commit();
    EXPECT_TRUE(slurp(dir / "a.safetensors") == slurp(dir / "b.safetensors")) << name_of(t);
    EXPECT_TRUE(slurp(dir / "a.safetensors") == slurp(dir / "c.safetensors")) << name_of(t);
  }
}

TEST(SafetensorsWrite, MissingAndRepeatedBytesAreBugsAndLeaveNoFile) {
  TempDir dir;
  std::vector<float> v(6, 1.0F);
  FilePlan plan = plan_file("x.safetensors", {{"w", StoredType::f32, {2, 3}}});
  {
    auto w = SafetensorsWriter::create(dir.path(), plan);
    w.write("w", {{0, 1}, {0, 3}}, v.data());
    EXPECT_THROW(w.commit(), BugError);
    EXPECT_THROW(w.write("other", {}, v.data()), BugError);
    EXPECT_THROW(w.write("w", {{0, 3}, {0, 3}}, v.data()), BugError);
    EXPECT_THROW(w.write("w", {{0, 2}, {0, 3}}, v.data()), BugError);
    EXPECT_THROW(w.write_bytes("w", 20, v.data(), 8), BugError);
  }
  EXPECT_TRUE(list_dir(dir.path()).empty());
}

TEST(SafetensorsWrite, ValuesThatDoNotFitAreErrorsWithTensorAndRemedy) {
  TempDir dir;
  auto w = SafetensorsWriter::create(dir.path(), plan_file("x.safetensors", {{"w", StoredType::f16, {3}}}));
  std::vector<float> v{1, 2, 70000};
  try {
    w.write("w", {{0, 3}}, v.data());
    FAIL();
  } catch (const UsageError& e) {
    EXPECT_THAT(e.what(), HasSubstr("w: 70000 (element 2) can't be stored as F16"));
  }
}

TEST(SafetensorsWrite, AFullDiskIsAnErrorBeforeTheWrites) {
  TempDir dir;
  sys::set_hook([](const sys::Call& c) {
    return c.op == sys::Op::allocate ? sys::Verdict{sys::Verdict::fail, ENOSPC} : sys::Verdict{};
  });
  EXPECT_THROW(SafetensorsWriter::create(dir.path(), plan_file("x", {{"w", StoredType::f32, {1000}}})),
               IoError);
  sys::set_hook({});
  EXPECT_TRUE(list_dir(dir.path()).empty());
}

TEST(SafetensorsWrite, HeadersAreAlignedAndNamesEscaped) {
  FilePlan p = plan_file(
      "x", {{"a\"\n\\", StoredType::u8, {3}}, {"z", StoredType::f64, {}}, {"e", StoredType::f32, {0}}});
  EXPECT_EQ(p.head.size() % 8, 0u);
  Header h = parse_header(std::string_view(p.head).substr(8), static_cast<i64>(p.head.size()), p.bytes, "x");
  EXPECT_EQ(h.metadata.at("format"), "pt");
  ASSERT_EQ(h.entries.size(), 3u);
  EXPECT_EQ(h.entries[0].name, "a\"\n\\");
  EXPECT_EQ(h.entries[0].offset, static_cast<i64>(p.head.size()) + 8);  // after the f64
  EXPECT_EQ(p.bytes, static_cast<i64>(p.head.size()) + 11);
  EXPECT_THROW(plan_file("x", {{"a", StoredType::u8, {}}, {"a", StoredType::u8, {}}}), BugError);
  EXPECT_THROW(plan_file("x", {{"a", StoredType::u8, {i64{1} << 40, i64{1} << 40}}}), BugError);
}

TEST(SafetensorsWrite, ModelsAreSplitGreedilyLikeInTransformers) {
  std::vector<TensorPlan> tensors = {{"e", StoredType::f32, {10}},
                                     {"d", StoredType::f32, {10}},
                                     {"c", StoredType::f32, {30}},
                                     {"b", StoredType::f32, {5}},
                                     {"a", StoredType::f32, {5}}};
  ModelPlan one = plan_model(tensors, 240);
  ASSERT_EQ(one.files.size(), 1u);
  EXPECT_EQ(one.files[0].file, "model.safetensors");
  EXPECT_EQ(one.index_json, "");
  ModelPlan p = plan_model(tensors, 100);  // 40 + 40 | 120 alone, above the limit | 20 + 20
  ASSERT_EQ(p.files.size(), 3u);
  EXPECT_EQ(p.files[0].file, "model-00001-of-00003.safetensors");
  EXPECT_EQ(p.file_of("d"), 0);
  EXPECT_EQ(p.file_of("c"), 1);
  EXPECT_EQ(p.file_of("a"), 2);
  EXPECT_EQ(p.file_of("x"), -1);
  EXPECT_EQ(p.index_json.rfind("{\n  \"metadata\": {\n    \"total_parameters\": 60,\n    \"total_size\": "
                               "240\n  },\n  \"weight_map\"",
                               0),
            0u);
  EXPECT_THAT(p.index_json, HasSubstr("\"a\": \"model-00003-of-00003.safetensors\""));
}

}  // namespace
}  // namespace redco::ckpt

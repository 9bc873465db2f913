#include "ckpt/model_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/strict_json.h"
#include "ckpt/safetensors_write.h"
#include "support/temp_dir.h"

namespace redco::ckpt {
namespace {

using test::slurp;
using test::spill;
using test::TempDir;
using ::testing::HasSubstr;

std::string refusal_of_folder(const std::string& folder) {
  try {
    ModelFiles::open(folder);
  } catch (const ContentsError& e) {
    return e.what();
  }
  return "accepted";
}

void write_file(const std::string& folder, const std::string& file, const std::vector<std::string>& names) {
  std::vector<TensorPlan> plan;
  for (const std::string& n : names) plan.push_back({n, StoredType::f32, {1}});
  auto w = SafetensorsWriter::create(folder, plan_file(file, plan));
  float one = 1;
  for (const std::string& n : names) w.write(n, {{0, 1}}, &one);
  w.commit();
}

TEST(ModelFiles, ShardsHaveTheTensorsOfTheSingleFile) {
  ModelFiles one = ModelFiles::open(REDCO_FIXTURES "/llama"),
             shards = ModelFiles::open(REDCO_FIXTURES "/llama-sharded");
  ASSERT_EQ(one.tensors().size(), shards.tensors().size());
  for (const auto& l : one.tensors()) {
    const auto& s = shards.at(l.entry->name);
    EXPECT_EQ(l.file->read<float>(*l.entry), s.file->read<float>(*s.entry)) << l.entry->name;
  }
  EXPECT_EQ(shards.find("no"), nullptr);
  EXPECT_THROW(shards.at("no"), ContentsError);
  const auto& e = one.at("model.embed_tokens.weight");
  Box box{{3, 5}, {0, 4}};
  std::vector<float> a(8), b(8);
  one.read("model.embed_tokens.weight", box, a.data(), contiguous(box));
  shards.read("model.embed_tokens.weight", box, b.data(), contiguous(box));
  EXPECT_EQ(a, b);
  EXPECT_EQ(a[0], e.file->read<float>(*e.entry)[static_cast<size_t>(3 * e.entry->shape[1])]);
}

// ModelFiles opens the shards of plan_model.
TEST(ModelFiles, ASplitModelIsReadBack) {
  TempDir dir;
  ModelFiles source = ModelFiles::open(REDCO_FIXTURES "/gptj");
  std::vector<TensorPlan> tensors;
  for (const auto& l : source.tensors()) tensors.push_back({l.entry->name, StoredType::f32, l.entry->shape});
  ModelPlan plan = plan_model(tensors, 50'000);
  ASSERT_GT(plan.files.size(), 2u);
  i64 bytes = 0;
  for (const FilePlan& file : plan.files) {
    auto w = SafetensorsWriter::create(dir.path(), file);
    for (const TensorEntry& e : file.entries) {
      const auto& l = source.at(e.name);
      w.write(e.name, whole(e.shape), l.file->read<float>(*l.entry).data());
    }
    w.commit();
    bytes += file_size(dir / file.file);
  }
  write_file_durable(dir / plan.index_name, plan.index_json);
  EXPECT_EQ(bytes + file_size(dir / plan.index_name), plan.bytes);
  ModelFiles back = ModelFiles::open(dir.path());
  for (const auto& l : source.tensors()) {
    const auto& b = back.at(l.entry->name);
    EXPECT_EQ(b.file->path(), dir / plan.files[static_cast<size_t>(plan.file_of(l.entry->name))].file);
    EXPECT_EQ(l.file->read<float>(*l.entry), b.file->read<float>(*b.entry));
  }
}

// For the same assignment of tensors to shards, the index has the same bytes as transformers'.
TEST(ModelFiles, TheIndexIsWrittenAsTransformersWritesIt) {
  ModelFiles m = ModelFiles::open(REDCO_FIXTURES "/llama-sharded");
  std::vector<TensorPlan> tensors;
  for (const char* shard : {"1", "2", "3"})
    for (const auto& l : m.tensors())
      if (file_name(l.file->path()) == fmt::format("model-0000{}-of-00003.safetensors", shard))
        tensors.push_back({l.entry->name, l.entry->type, l.entry->shape});
  ModelPlan plan = plan_model(tensors, 80'000);
  ASSERT_EQ(plan.files.size(), 3u);
  EXPECT_EQ(plan.index_json, slurp(REDCO_FIXTURES "/llama-sharded/model.safetensors.index.json"));
}

TEST(ModelFiles, ContradictionsOfIndexAndShardsAreErrors) {
  TempDir dir;
  auto index = [&](const std::string& map) {
    spill(dir / "model.safetensors.index.json", "{\"metadata\":{},\"weight_map\":" + map + "}");
    return refusal_of_folder(dir.path());
  };
  write_file(dir.path(), "x.safetensors", {"a", "b"});
  write_file(dir.path(), "y.safetensors", {"c"});
  EXPECT_EQ(index(R"({"a":"x.safetensors","b":"x.safetensors","c":"y.safetensors"})"), "accepted");
  EXPECT_EQ(index(R"({"a":"x.safetensors","c":"y.safetensors"})"), "accepted");
  EXPECT_THAT(index(R"({"a":"x.safetensors","c":"z.safetensors"})"),
              HasSubstr("z.safetensors, which is missing"));
  EXPECT_THAT(index(R"({"a":"x.safetensors","d":"x.safetensors"})"),
              HasSubstr("places d in x.safetensors, but it isn't"));
  EXPECT_THAT(index(R"({"a":"y.safetensors","c":"x.safetensors"})"), HasSubstr("but it is in x.safetensors"));
  EXPECT_THAT(index(R"({"a":"x.safetensors","a":"y.safetensors"})"), HasSubstr("the key a appears twice"));
  EXPECT_THAT(index(R"({"a":1})"), HasSubstr("expected a file name"));
  for (const char* name : {"../x.safetensors", "/x.safetensors", "x.bin", "", "sub/x.safetensors"})
    EXPECT_THAT(index(std::string("{\"a\":\"") + name + "\"}"), HasSubstr("in the same folder")) << name;
  for (const char* map : {"{}", "[]", "1", "null"}) EXPECT_THAT(index(map), HasSubstr("weight_map")) << map;
  spill(dir / "model.safetensors.index.json", "[]");
  EXPECT_THAT(refusal_of_folder(dir.path()), HasSubstr("weight_map"));
  write_file(dir.path(), "y.safetensors", {"a", "c"});
  EXPECT_THAT(index(R"({"b":"x.safetensors","c":"y.safetensors"})"),
              HasSubstr("a is in both x.safetensors and y.safetensors"));
  testing::internal::CaptureStderr();
  EXPECT_EQ(index(R"({"a":"y.safetensors","b":"x.safetensors"})"), "accepted");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("reading a from y.safetensors"));
  EXPECT_EQ(file_name(ModelFiles::open(dir.path()).at("a").file->path()), "y.safetensors");
}

TEST(ModelFiles, ASingleFileBesideAnIndexIsReadWithAWarning) {
  TempDir dir;
  write_file(dir.path(), "model.safetensors", {"a"});
  write_file(dir.path(), "x.safetensors", {"a"});
  spill(dir / "model.safetensors.index.json", R"({"weight_map":{"a":"x.safetensors"}})");
  testing::internal::CaptureStderr();
  EXPECT_EQ(file_name(ModelFiles::open(dir.path()).at("a").file->path()), "model.safetensors");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("model.safetensors.index.json"));
}

TEST(ModelFiles, FoldersWithoutWeightsAreErrors) {
  TempDir dir;
  EXPECT_THROW(ModelFiles::open(dir / "no"), UsageError);
  EXPECT_THAT(refusal_of_folder(dir.path()), HasSubstr("the folder has no model.safetensors"));
  EXPECT_THAT(refusal_of_folder(dir.path()), HasSubstr("or pytorch_model.bin"));
}

TEST(StrictJson, InvalidDocumentsAreErrors) {
  EXPECT_EQ(parse_strict_json(R"({"a":[1,{"a":2}],"b":{"a":3}})", "x")["b"]["a"], 3);
  for (const char* bad : {"", "{", "{} 1", R"({"a":1,"a":1})", R"({"b":{"a":1,"\u0061":1}})",
                          "{\"a\":\"\xff\"}", "{a:1}", "[1,]"})
    EXPECT_THROW(parse_strict_json(bad, "x"), ContentsError) << bad;
  EXPECT_THROW(parse_strict_json(std::string_view("{}\0", 3), "x"), ContentsError);
  EXPECT_NO_THROW(parse_strict_json(std::string(32, '[') + std::string(32, ']'), "x"));
  EXPECT_THROW(parse_strict_json(std::string(33, '[') + std::string(33, ']'), "x"), ContentsError);
  EXPECT_THROW(parse_strict_json(std::string(3'000'000, '['), "x"), ContentsError);
}

}  // namespace
}  // namespace redco::ckpt

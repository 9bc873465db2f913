// redco convert: folders to GGUF files and back.
#include "commands/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "assembly/job_model.h"
#include "assembly/job_params.h"
#include "assembly/job_pipeline.h"
#include "ckpt/model_files.h"
#include "ckpt/safetensors_write.h"
#include "gguf/folder.h"
#include "gguf/header.h"
#include "support/error_text.h"
#include "support/jobs.h"
#include "support/ranks.h"
#include "support/temp_dir.h"
#include "tokenizers/tokenizer.h"
#include "train/step.h"

namespace redco {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

const std::string kFixtures = REDCO_FIXTURES;

class Convert : public ::testing::Test {
 protected:
  Convert() { setenv("XDG_CACHE_HOME", (dir_ / "cache").c_str(), 1); }
  // A copy of a fixture's model, with a tokenizer.
  std::string folder(const std::string& name, const std::string& tokenizer = "") {
    const std::string to = dir_ / ("in-" + name + tokenizer);
    std::filesystem::create_directories(to);
    for (const char* file : {"config.json", "model.safetensors", "generation_config.json"})
      if (std::filesystem::exists(kFixtures + "/" + name + "/" + file))
        std::filesystem::copy_file(kFixtures + "/" + name + "/" + file, to + "/" + file);
    for (const char* file : {"tokenizer.json", "tokenizer_config.json"})
      if (!tokenizer.empty())
        std::filesystem::copy_file(kFixtures + "/tokenizers/" + tokenizer + "/" + file, to + "/" + file);
    return to;
  }
  std::string convert(const std::string& model, const std::string& to, const std::string& dtype) {
    const std::string out = dir_ / fmt::format("out{}{}", count_++, to == "gguf" ? ".gguf" : "");
    EXPECT_EQ(run_convert({.model = model, .to = to, .output = out, .dtype = dtype, .base = ""}), 0);
    return out;
  }
  std::string refused(const std::string& model) {
    const std::string out = dir_ / "refused.gguf";
    const std::string text = error_text<Error>(
        [&] { run_convert({.model = model, .to = "gguf", .output = out, .dtype = "f32", .base = ""}); });
    EXPECT_FALSE(std::filesystem::exists(out));
    EXPECT_FALSE(std::filesystem::exists(out + ".tmp.gguf"));
    return text;
  }

  test::TempDir dir_;
  int count_ = 0;
};

TEST_F(Convert, ThereAndBack) {
  for (const char* name :
       {"llama", "llama-rope-llama3", "llama-rope-yarn", "llama-rope-linear", "mixtral", "mixtral-balanced",
        "qwen3_moe", "qwen2_moe", "gemma", "gemma2", "phi3", "phi3-longrope", "gpt2", "gpt_oss"}) {
    SCOPED_TRACE(name);
    const std::string in = folder(name);
    if (std::string_view(name).starts_with("gemma")) {
      // A file has no key for the scale of the scores.
      Json config = Json::parse(test::slurp(in + "/config.json"));
      if (config.contains("query_pre_attn_scalar")) config["query_pre_attn_scalar"] = config["head_dim"];
      test::spill(in + "/config.json", config.dump());
    }
    if (std::string_view(name) == "gpt_oss") {  // a file has no keys for these
      Json config = Json::parse(test::slurp(in + "/config.json"));
      config["rope_parameters"].update({{"beta_fast", 32.0}, {"beta_slow", 1.0}, {"truncate", false}});
      test::spill(in + "/config.json", config.dump());
    }
    std::string back;
    ASSERT_NO_THROW(back = convert(convert(in, "gguf", "f32"), "hf", "f32"));
    const auto want = ckpt::ModelFiles::open(in), got = ckpt::ModelFiles::open(back);
    // The norms of Gemma are stored as 1 + w, and the tied head of GPT-2 once.
    const float tolerance = std::string_view(name).starts_with("gemma") ? 2e-7F : 0;
    for (const auto& l : want.tensors()) {
      const auto* other = got.find(l.entry->name);
      if (!other) other = got.find("transformer." + l.entry->name);
      if (!other && (l.entry->name == "lm_head.weight" || l.entry->name.ends_with("attn.bias"))) continue;
      ASSERT_TRUE(other) << l.entry->name;
      const auto x = l.file->read<float>(*l.entry), y = other->file->read<float>(*other->entry);
      ASSERT_EQ(l.entry->shape, other->entry->shape) << l.entry->name;
      for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], tolerance) << l.entry->name;
    }
  }
}

// Experts in blocks become floats with the same values, which the config no longer calls quantized.
TEST_F(Convert, BlocksOfExpertsBecomeFloats) {
  const std::string in = folder("gpt_oss-mxfp4"), out = convert(in, "hf", "bf16");
  EXPECT_FALSE(Json::parse(test::slurp(out + "/config.json")).contains("quantization_config"));
  const auto want = ckpt::ModelFiles::open(in), got = ckpt::ModelFiles::open(out);
  const std::string name = "model.layers.0.mlp.experts.gate_up_proj";
  EXPECT_EQ(got.find(name + "_blocks"), nullptr);
  EXPECT_EQ(got.at(name).entry->shape, (Shape{4, 32, 128}));
  EXPECT_EQ(want.at(name).file->read<float>(*want.at(name).entry),
            got.at(name).file->read<float>(*got.at(name).entry));
}

TEST_F(Convert, Tokenizers) {
  for (const auto& [model, tokenizer] :
       {std::pair("llama", "llama2"), std::pair("llama", "gpt2"), std::pair("gpt2", "gpt2")}) {
    SCOPED_TRACE(tokenizer);
    const std::string in = folder(model, tokenizer);
    if (std::string(model) == "gpt2") {  // rows for each id
      Json config = Json::parse(test::slurp(in + "/config.json"));
      if (config["vocab_size"] < 512) continue;
    }
    const auto own = load_tokenizer(in), read = load_tokenizer(convert(in, "hf", "f32"));
    const std::string file = convert(in, "gguf", "f16");
    const auto from_file = load_tokenizer(gguf::folder_of(file));
    for (const char* text : {"Hello there", " x  y", "a\nb 12"}) {
      EXPECT_EQ(read->encode(text), own->encode(text));
      EXPECT_EQ(from_file->encode(text), own->encode(text));
    }
    EXPECT_EQ(from_file->special().eos, own->special().eos);
  }
}

TEST_F(Convert, WhatAFileCannotHoldIsAnError) {
  EXPECT_THAT(refused(folder("gemma3")), HasSubstr("rope_local_base_freq is 5000"));
  EXPECT_THAT(refused(folder("qwen3")), HasSubstr("attention_bias=true has no key in a GGUF file"));
  EXPECT_THAT(refused(kFixtures + "/opt"), HasSubstr("hold no models of type opt"));
  const std::string in = folder("llama");
  Json config = Json::parse(test::slurp(in + "/config.json"));
  config["hidden_act"] = "gelu";
  test::spill(in + "/config.json", config.dump());
  EXPECT_THAT(refused(in), HasSubstr("hidden_act is"));
  EXPECT_THAT(refused(folder("llama", "t5")), HasSubstr("Unigram"));
  EXPECT_THAT(error_text<Error>([&] {
                run_convert({"/nowhere", "hf", dir_ / "x", "f32", ""});
              }),
              HasSubstr("no such folder or GGUF file"));
  EXPECT_THAT(error_text<Error>([&] {
                run_convert({in, "hf", dir_ / "x", "q4_k", ""});
              }),
              HasSubstr("--to gguf"));
  EXPECT_THAT(error_text<Error>([&] {
                run_convert({in, "gguf", dir_.path(), "f32", ""});
              }),
              HasSubstr("exists"));
}

TEST_F(Convert, Adapters) {
  const std::string out = dir_ / "adapter.gguf";
  EXPECT_EQ(run_convert({kFixtures + "/lora-gpt2", "gguf", out, "f32", kFixtures + "/gpt2"}), 0);
  EXPECT_GT(std::filesystem::file_size(out), 100U);
}

// The rows of lora_A are the rank, which no heads divide; those of lora_B are in the file's rotary order.
TEST_F(Convert, AdaptersOfRotaryLayers) {
  const std::string in = dir_ / "adapter", prefix = "base_model.model.model.layers.0.self_attn.";
  std::filesystem::create_directories(in);
  Json config = {{"peft_type", "LORA"},
                 {"r", 3},
                 {"lora_alpha", 6},
                 {"target_modules", {"q_proj", "k_proj"}},
                 {"base_model_name_or_path", kFixtures + "/llama"}};
  test::spill(in + "/adapter_config.json", config.dump());
  std::vector<ckpt::TensorPlan> plan;
  for (const auto& [layer, rows] : {std::pair("q_proj", 32), std::pair("k_proj", 16)}) {
    plan.push_back({prefix + layer + ".lora_A.weight", ckpt::StoredType::f32, {3, 32}});
    plan.push_back({prefix + layer + ".lora_B.weight", ckpt::StoredType::f32, {rows, 3}});
  }
  auto writer = ckpt::SafetensorsWriter::create(in, ckpt::plan_file("adapter_model.safetensors", plan));
  for (const auto& t : plan) {
    std::vector<float> values(static_cast<std::size_t>(numel(t.shape)));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 64;
    writer.write(t.name, ckpt::whole(t.shape), values.data());
  }
  writer.commit();
  const std::string out = dir_ / "rotary.gguf";
  EXPECT_EQ(run_convert({in, "gguf", out, "f32", ""}), 0);
  const gguf::Model written = gguf::open_model(out);
  EXPECT_EQ(written.header.tensors.size(), 4U);
  config["alpha_pattern"] = {{"k_proj", 3}};
  test::spill(in + "/adapter_config.json", config.dump());
  EXPECT_THAT(error_text<Error>([&] {
                run_convert({in, "gguf", dir_ / "several.gguf", "f32", ""});
              }),
              HasSubstr("several alphas"));
}

// Importances of columns, which parts of one stored tensor share, change the blocks.
TEST_F(Convert, CalibrationChangesTheBlocks) {
  const std::string in = folder("gpt2", "gpt2"), texts = dir_ / "texts.txt";
  test::spill(texts, "A text of some words. Another one, with 12 numbers.");
  const std::string out = dir_ / "calibrated.gguf", plain = convert(in, "gguf", "q4_1");
  EXPECT_EQ(run_convert({.model = in, .to = "gguf", .output = out, .dtype = "q4_1", .calibration = texts}),
            0);
  const auto values = [](const std::string& file, const char* name) {
    const auto files = ckpt::ModelFiles::open(gguf::folder_of(file));
    return files.at(name).file->read<float>(*files.at(name).entry);
  };
  for (const char* name : {"transformer.h.0.attn.c_attn.weight", "transformer.h.1.mlp.c_fc.weight"})
    EXPECT_NE(values(out, name), values(plain, name)) << name;
  EXPECT_EQ(values(out, "transformer.wpe.weight"), values(plain, "transformer.wpe.weight"));
  EXPECT_THAT(
      usage_error([&] {
        run_convert(
            {.model = in, .to = "gguf", .output = dir_ / "x.gguf", .dtype = "f16", .calibration = texts});
      }),
      HasSubstr("--calibration has no effect on f16"));
  EXPECT_THAT(usage_error([&] {
                run_convert({.model = in,
                             .to = "gguf",
                             .output = dir_ / "x.gguf",
                             .dtype = "q4_1",
                             .calibration = "/nowhere.txt"});
              }),
              HasSubstr("/nowhere.txt does not exist"));
}

// The blocks of a file are the model's weights, which adapters may be trained on.
TEST_F(Convert, AJobKeepsTheBlocksOfAFile) {
  const std::string file = convert(folder("llama"), "gguf", "q8_0");
  const auto train = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"model.path=" + file};
    words.insert(words.end(), more.begin(), more.end());
    const JobConfig job = test::job_of("", words);
    const ModelSource source = training_source(job, nullptr);
    const auto model = make_job_model(job, source);
    const auto pipeline = make_job_pipeline(job, model.get(), nullptr);
    std::map<DType, int> types;
    redco::testing::on_one_rank([&](Context&) {
      ParamTree params = make_job_params(job, source, model.get(), model->params(), training_storage(job));
      for (std::size_t i = 0; i < params.size(); ++i)
        if (params.specs()[i].kind == ParamKind::linear && params.specs()[i].adapter.weight.empty())
          ++types[params.values()[i].dtype()];
      const TrainStep step(*pipeline, params, step_options(job.train, {}, training_storage(job).weights));
    });
    return types;
  };
  const std::vector<std::string> lora = {"train.lora.rank=2"};
  const auto kept = train(lora), widened = train({"model.weight_dtype=fp32"});
  EXPECT_GT(kept.at(DType::q8), 0);
  EXPECT_GT(kept.at(DType::f32), 0);  // rows of 56, which are F16 in the file
  EXPECT_EQ(widened.count(DType::q8), 0U);
  const std::string text = error_text<UsageError>([&] { train({}); });
  EXPECT_THAT(text, HasSubstr("is quantized (int8), but all weights are trained"));
  EXPECT_THAT(text, HasSubstr("model.weight_dtype=fp32"));
  EXPECT_THAT(text, HasSubstr("redco convert FILE.gguf --to hf"));
}

}  // namespace
}  // namespace redco

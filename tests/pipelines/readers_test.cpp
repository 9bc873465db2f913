// The readers of the built-in pipelines: the names of their indexes, the order of examples and the
// fingerprints are those of earlier versions. A run resumes only with the same ones, and a cache is used only
// by them. (The name of a records file is that of format 2, which counts lines that data.skip_bad left out.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/hash.h"
#include "data/images/image.h"
#include "pipelines/pipelines.h"
#include "pipelines/read_images.h"
#include "support/error_text.h"
#include "support/ranks.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using redco::testing::on_mesh;
using test::spill;

struct ReaderCase {
  std::string pipeline, config;
  std::vector<std::string> files;
  std::map<std::string, std::string> texts = {};  // contents by file
  std::vector<std::string> label_names = {};
  ExampleFields fields = {};
};

const char* const kGpt2Reader =
    R"({"model_type": "gpt2", "vocab_size": 257, "n_embd": 16, "n_layer": 1, "n_head": 4, "n_positions": 64})";
const char* const kT5Reader =
    R"({"model_type": "t5", "vocab_size": 257, "d_model": 16, "d_kv": 4, "d_ff": 32, "num_layers": 1,
        "num_heads": 4, "decoder_start_token_id": 256, "pad_token_id": 256, "eos_token_id": 256})";
const char* const kCaptionReader =
    R"({"model_type": "vision-encoder-decoder", "decoder_start_token_id": 256, "pad_token_id": 256,
        "encoder": {"model_type": "vit", "image_size": 32, "patch_size": 8, "hidden_size": 24,
                    "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 32},
        "decoder": {"model_type": "gpt2", "vocab_size": 257, "n_embd": 32, "n_layer": 1, "n_head": 4,
                    "n_positions": 64, "is_decoder": true, "add_cross_attention": true}})";
const char* const kBertReader =
    R"({"model_type": "bert", "architectures": ["BertForSequenceClassification"], "vocab_size": 257,
        "hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 32,
        "max_position_embeddings": 64, "id2label": {"0": "bad", "1": "good"}})";
const char* const kVitReader =
    R"({"model_type": "vit", "architectures": ["ViTForImageClassification"], "image_size": 28, "patch_size": 7,
        "num_channels": 1, "hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 4,
        "intermediate_size": 32, "id2label": {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2", "3": "LABEL_3",
        "4": "LABEL_4", "5": "LABEL_5", "6": "LABEL_6", "7": "LABEL_7", "8": "LABEL_8", "9": "LABEL_9"}})";
const char* const kMlpReader =
    R"({"model_type": "mlp", "input_size": 3, "hidden_sizes": [4], "num_labels": 1})";

std::map<std::string, ReaderCase> reader_cases() {
  const std::string pairs = "source,target\nabc,\"x, y\"\nde,z\n";
  return {
      {"dpo",
       {"dpo",
        kGpt2Reader,
        {"a.jsonl"},
        {{"a.jsonl",
          "{\"prompt\": \"p\", \"chosen\": \"yes\", \"rejected\": \"no\"}\n\n{\"id\": 7, \"prompt\": \"q\", "
          "\"chosen\": \"a\", \"rejected\": \"bcd\"}\n"}}}},
      {"pairs.jsonl",
       {"seq2seq",
        kT5Reader,
        {"p.jsonl"},
        {{"p.jsonl",
          "{\"source\": \"abc\", \"target\": \"x, y\"}\n{\"source\": \"de\", \"target\": \"z\"}\n"}}}},
      {"pairs.csv", {"seq2seq", kT5Reader, {"p.csv"}, {{"p.csv", pairs}}}},
      {"pairs.tsv", {"seq2seq", kT5Reader, {"p.tsv"}, {{"p.tsv", "source\ttarget\nabc\tx, y\nde\tz\n"}}}},
      {"captions", {"captioning", kCaptionReader, {"builtin:shapes"}}},
      {"texts.csv",
       {"classification",
        kBertReader,
        {"t.csv"},
        {{"t.csv", "text,label\nfine,good\n\"no, no\",bad\nwell,good\n"}},
        {"bad", "good"}}},
      {"vectors", {"regression", kMlpReader, {"builtin:function"}}},
      {"glyphs",
       {"classification",
        kVitReader,
        {"builtin:glyphs"},
        {},
        {"arrow", "bar", "box", "cross", "fork", "hook", "plus", "ring", "roof", "wave"}}}};
}

// "FINGERPRINT EXAMPLES INDEX": hashes of the data, of the first examples in their order, the index file.
std::string reader_facts(const ReaderCase& c, const std::string& folder) {
  const auto model = make_model({c.config, "test"});
  const auto tokenizer = load_tokenizer("bytes");
  const auto pipeline = make_pipeline(c.pipeline);
  auto settings = std::make_shared<PipelineSettings>();
  settings->data.label_names = c.label_names;
  settings->data.fields = c.fields;
  pipeline->model = model.get();
  pipeline->tokenizer = tokenizer.get();
  pipeline->settings = settings;
  DataRequest request{.cache = folder + "/cache", .max_length = 64, .fingerprint = "of the job"};
  for (const std::string& f : c.files) request.files.push_back(c.texts.count(f) ? folder + "/" + f : f);
  const auto data = pipeline->open(request);
  std::vector<Example> first;
  for (i64 i = 0; i < std::min<i64>(data->size(), 12); ++i) {
    first.push_back(data->outline(i));
    first.back().values.erase("pixels");
  }
  std::string index = "none";
  for (const auto& e : std::filesystem::directory_iterator(folder + "/cache"))
    if (const std::string name = e.path().filename().string();
        name.size() > 32 && !name.starts_with("builtin-") && !name.ends_with(".json"))
      index = name;
  return hash128(data->fingerprint()).hex() + " " + hash128(examples_to_json(first)).hex() + " " + index;
}

TEST(Readers, IndexesOrdersAndFingerprintsAreThoseOfEarlierVersions) {
  const std::map<std::string, std::string> earlier = {
      {"captions",
       "8b3fc89ac31fbf010fa1389f3b4150ea 7809ce0a578667ca19de935897d7b21f 2a6a1614da6536582eecb9b5d3f456d6.examples"},
      {"dpo",
       "03c812d51fb7169e50d4ac42ef4482c2 5bc4a07ea808ed0eb4ee229b35523058 d22a70f7cd2556067053b6ccc1047539.records"},
      {"glyphs", "c15e6ce0e0f1159b1bc5703ed35956f8 4e81221b2cbe330579a2d8f7e49058b1 none"},
      {"pairs.csv",
       "e905d194c09b666dbcdbf8d902aefda2 b0ebf9d2f493944ec19c8db5fc97f481 44c2935186a9c0927c1a04ac0034bc84.examples"},
      {"pairs.jsonl",
       "bb2eab9e4e620627d077699b03512f56 b0ebf9d2f493944ec19c8db5fc97f481 02d720ccc9d69c4ccab0463c564a4dad.examples"},
      {"pairs.tsv",
       "353ac3b371ce4b546418528c60871003 b0ebf9d2f493944ec19c8db5fc97f481 6a2c30de076b40a4e58512f94917b7a4.examples"},
      {"texts.csv",
       "085f0fa66bcb42457e8f5872f5186718 2f663634243edcb223e2c52ba00a66f4 16b5e111681b56c1ddea4fe0ff63d5ba.labelled"},
      {"vectors",
       "680605e4b7f6f8108015fabe60b7e3aa b47f2fe6e6e3383bd9c004a10f176722 3237f003289e6b6d4cfa0c6cf1b16e8f.labelled"},
  };
  for (const auto& [name, c] : reader_cases()) {
    test::TempDir one, two;
    for (const auto& [file, text] : c.texts) {
      spill(one / file, text);
      spill(two / file, text);
    }
    for (const auto& [mesh, folder] : {std::pair{Mesh{1, 1}, &one}, std::pair{Mesh{2, 1}, &two}})
      on_mesh(mesh, [&](Context&) { EXPECT_EQ(reader_facts(c, folder->path()), earlier.at(name)) << name; });
  }
}

// GSM8K's keys are those of grpo, if it has no others.
TEST(Readers, QuestionAndAnswerArePromptAndCompletion) {
  const auto examples = [](const std::string& line) {
    test::TempDir dir;
    spill(dir / "a.jsonl", line + "\n");
    std::string facts;
    on_mesh({1, 1}, [&](Context&) {
      facts = reader_facts({"grpo", kGpt2Reader, {"a.jsonl"}, {{"a.jsonl", line + "\n"}}}, dir.path());
    });
    return facts.substr(0, 65);  // without the name of the index
  };
  const std::string usual = examples(R"({"prompt": "1+1?", "completion": "2"})");
  EXPECT_EQ(examples(R"({"question": "1+1?", "answer": "2"})"), usual);
  EXPECT_EQ(examples(R"({"prompt": "1+1?", "answer": "2"})"), usual);
  EXPECT_NE(examples(R"({"prompt": "1+1?", "completion": "2", "answer": "3"})"), usual);
}

TEST(Readers, KeysOfPreferencesMayHaveOtherNames) {
  const auto examples = [](const std::string& file, const std::string& text, const ExampleFields& fields) {
    test::TempDir dir;
    spill(dir / file, text);
    std::string facts;
    on_mesh({1, 1}, [&](Context&) {
      facts = reader_facts({.pipeline = "dpo",
                            .config = kGpt2Reader,
                            .files = {file},
                            .texts = {{file, text}},
                            .fields = fields},
                           dir.path());
    });
    return facts.substr(33, 32);  // the examples
  };
  const std::string usual =
      examples("a.jsonl", "{\"prompt\":\"q\",\"chosen\":\"a\",\"rejected\":\"b\"}\n", {});
  ExampleFields fields;
  fields.prompt = "question", fields.chosen = "answers.0", fields.rejected = "answers.1";
  EXPECT_EQ(examples("a.jsonl", "{\"question\":\"q\",\"answers\":[\"a\",\"b\"]}\n", fields), usual);
  fields.prompt = "{x}", fields.chosen = "good", fields.rejected = "bad";
  EXPECT_EQ(examples("a.csv", "x,good,bad\nq,a,b\n", fields), usual);
}

// An error on the first rank, or one of the settings, is thrown on all ranks.
TEST(Readers, ErrorsAreThrownOnAllRanks) {
  std::map<std::string, ReaderCase> cases = reader_cases();
  cases["pairs.csv"].texts["p.csv"] = "source,target\nabc,\n";
  cases["texts.csv"].texts["t.csv"] = "text,label\nfine,great\n";
  cases["dpo"].texts["a.jsonl"] = "{\"prompt\": \"p\", \"chosen\": \"yes\"}\n";
  cases["pairs.tsv"].files = {"p.txt"};
  cases["pairs.tsv"].texts = {{"p.txt", "abc"}};
  for (const auto& [name, what] : std::map<std::string, std::string>{
           {"pairs.csv", "p.csv:2: the target is empty"},
           {"texts.csv", "t.csv:2: "},
           {"dpo", "a.jsonl:1: no \"rejected\""},
           {"pairs.tsv", "text pairs need one of the formats jsonl, json, tsv, csv, parquet and arrow"}}) {
    test::TempDir dir;
    for (const auto& [file, text] : cases[name].texts) spill(dir / file, text);
    on_mesh({2, 1}, [&](Context&) {
      EXPECT_THAT(error_text<Error>([&] { reader_facts(cases[name], dir.path()); }),
                  ::testing::HasSubstr(what))
          << name;
    });
  }
}

TEST(ReadImages, MayHaveNoClasses) {
  test::TempDir dir;
  std::filesystem::create_directories(dir / "set/more");
  Image grey{.height = 2, .width = 2, .channels = 1, .pixels = {0, 255, 0, 255}};
  spill(dir / "set/b.png", encode_png(grey));
  grey.pixels[0] = 255;
  spill(dir / "set/more/a.png", encode_png(grey));
  spill(dir / "lines.jsonl", "{\"image\": \"set/b.png\"}\n{\"image\": \"set/more/a.png\", \"label\": 7}\n");
  on_mesh({2, 1}, [&](Context&) {
    for (const std::string file : {"set", "lines.jsonl"}) {
      const DataRequest request{.files = {dir / file}, .cache = dir / "cache"};
      const auto data = read_images(request, DataSettings(), {1, 2, 2});
      ASSERT_EQ(data->size(), 2);
      const Example e = data->get(0);
      EXPECT_THAT(e.values.at("pixel_values"), ::testing::ElementsAre(-1, 1, -1, 1));
      EXPECT_EQ(e.ids.count("label"), 0u);
      EXPECT_EQ(data->get(1).values.at("pixel_values")[0], 1);
    }
    const DataRequest labelled{.files = {dir / "set"}, .cache = dir / "cache"};
    EXPECT_THAT(error_text<ContentsError>([&] {
                  read_images(labelled, DataSettings(), {1, 2, 2}, 2);
                }),
                ::testing::HasSubstr("b.png: the image is not in the folder of a class"));
    DataSettings named;
    named.label_names = {"one"};
    EXPECT_THAT(error_text<UsageError>([&] {
                  read_images(labelled, named, {1, 2, 2});
                }),
                ::testing::HasSubstr("data.label_names has 1 classes, but the pipeline has 0"));
  });
}

TEST(ReadImages, ALineOfPredictionsIsAnImage) {
  test::TempDir dir;
  spill(dir / "a.png", encode_png({.height = 2, .width = 2, .channels = 1, .pixels = {0, 255, 0, 255}}));
  DataSettings settings;
  settings.images = dir.path();
  for (const std::string line : {R"({"image": "a.png", "id": 3})", R"({"prompt": "a.png"})"}) {
    const Example e = image_request(line, "in.jsonl:1", settings, {1, 2, 2});
    EXPECT_THAT(e.values.at("pixel_values"), ::testing::ElementsAre(-1, 1, -1, 1));
    EXPECT_EQ(e.text, R"({"image":"a.png"})");
  }
  for (const auto& [line, what] : std::map<std::string, std::string>{
           {R"({"image": "b.png"})", "in.jsonl:1: "}, {R"({"text": "a.png"})", "in.jsonl:1: no \"image\""}})
    EXPECT_THAT(error_text<ContentsError>([&] {
                  image_request(line, "in.jsonl:1", settings, {1, 2, 2});
                }),
                ::testing::HasSubstr(what));
  EXPECT_THAT(error_text<ContentsError>([&] {
                image_request(R"({"image": "a.png"})", "in.jsonl:1", settings, {1, 4, 4});
              }),
              ::testing::HasSubstr("in.jsonl:1: "));
}

}  // namespace
}  // namespace redco

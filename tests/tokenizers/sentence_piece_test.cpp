// sentencepiece models: ids equal those of the sentencepiece library. Folders with such a model, or with
// BERT's vocab.txt: ids equal those of transformers (scripts/make_sentencepiece_fixtures.py).
// REDCO_SENTENCEPIECE names another folder of such files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/base64.h"
#include "support/error_text.h"
#include "support/tokenizers.h"

namespace redco {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string root() {
  const char* other = std::getenv("REDCO_SENTENCEPIECE");
  return other != nullptr ? other : test::tokenizer_fixture("sentencepiece");
}

// The model files have no character map, which they share with the t5 fixture. A normalizer_spec with the map
// is appended to the model; protocol buffers merge it with the first one.
std::string model_bytes(const std::string& name, bool charsmap) {
  std::string bytes = test::slurp(root() + "/" + name + ".model");
  if (!charsmap) return bytes;
  static const std::string map = test::t5_charsmap();
  auto field = [](char tag, const std::string& value) {
    std::string out(1, tag);
    for (std::size_t n = value.size();; n >>= 7) {
      out += static_cast<char>((n & 127) | (n > 127 ? 128 : 0));
      if (n <= 127) break;
    }
    return out + value;
  };
  return bytes + field('\x1A', field('\x12', map));
}

TEST(SentencePiece, EveryCase) {
  test::TempDir temp;
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root())) {
    if (entry.path().extension() != ".json") continue;
    ++files;
    SCOPED_TRACE(entry.path().filename().string());
    const json all = json::parse(test::slurp(entry.path().string()));
    const std::string folder = temp / entry.path().stem().string();
    std::filesystem::create_directory(folder);
    std::string what = folder;
    if (all.contains("model")) {
      const std::string path = folder + "/" + all["file"].get<std::string>();
      test::spill(path, model_bytes(all["model"], all["charsmap"]));
      if (!all.contains("files")) what = path;
    }
    if (all.contains("models"))
      for (const auto& [name, model] : all["models"].items())
        test::spill(folder + "/" + name, model_bytes(model, true));
    if (all.contains("files"))
      for (const auto& [name, contents] : all["files"].items())
        test::spill(folder + "/" + name,
                    contents.is_string() ? contents.get<std::string>() : contents.dump());
    const auto t = load_tokenizer(what);
    int wrong = 0;
    for (const json& c : all["cases"]) {
      const auto text = c["text"].get<std::string>();
      const auto ids = c["ids"].get<std::vector<i32>>();
      const auto got = t->tokenize(text);
      const bool right =
          got.ids == ids && t->encode(text) == ids && t->decode(ids) == c["decoded"].get<std::string>() &&
          (!c.contains("target") || t->target().encode(text) == c["target"].get<std::vector<i32>>()) &&
          (!c.contains("tokens") || got.tokens == c["tokens"].get<std::vector<std::string>>());
      EXPECT_TRUE(right)
          << c.dump() << "\n"
          << json{{"ids", got.ids}, {"tokens", got.tokens}, {"decoded", t->decode(ids)}}.dump();
      if (!right && ++wrong > 2) break;
    }
    if (all.contains("special"))
      for (const auto& [role, id] : all["special"].items())
        EXPECT_EQ((role == "eos"   ? t->special().eos
                   : role == "bos" ? t->special().bos
                                   : t->special().unk),
                  id.is_null() ? std::nullopt : std::optional(id.get<i32>()))
            << role;
    // Save the tokenizer, and load it again with the model's config.json.
    const std::string copy = folder + "-copy";
    std::filesystem::create_directory(copy);
    t->save(copy);
    if (what != folder) continue;
    if (std::filesystem::exists(folder + "/config.json"))
      std::filesystem::copy(folder + "/config.json", copy + "/config.json");
    EXPECT_EQ(load_tokenizer(copy)->fingerprint(), t->fingerprint());
  }
  EXPECT_GT(files, 10);
}

// Each error is one line that names the folder and what is missing.
TEST(SentencePiece, MissingFilesAndCodes) {
  test::TempDir temp;
  const std::string folder = temp.path();
  const auto error = [&](const json& config) {
    test::spill(folder + "/tokenizer_config.json", config.dump());
    return error_text<std::runtime_error>([&] { load_tokenizer(folder); });
  };
  EXPECT_THAT(
      error({{"tokenizer_class", "MarianTokenizer"}}),
      HasSubstr("MarianTokenizer needs vocab.json, source.spm, target.spm, but vocab.json is missing"));
  EXPECT_THAT(error({{"tokenizer_class", "M2M100Tokenizer"}}), HasSubstr("vocab.json is missing"));
  test::spill(folder + "/sentencepiece.bpe.model", model_bytes("bpe", true));
  EXPECT_THAT(error({{"tokenizer_class", "NllbTokenizer"}}),
              HasSubstr("src_lang: the language code 'eng_Latn' has no token. Set src_lang"));
  EXPECT_THAT(error({{"tokenizer_class", "MBartTokenizer"}, {"src_lang", "xx"}}), HasSubstr("'xx'"));
  EXPECT_THAT(error({{"tokenizer_class", "BigBirdTokenizer"}}), HasSubstr("any with a tokenizer.json"));
  std::filesystem::remove(folder + "/sentencepiece.bpe.model");
  test::spill(folder + "/qwen.tiktoken", "IQ== 0\n");
  EXPECT_THAT(error({{"tokenizer_class", "QWenTokenizer"}}), HasSubstr("qwen.tiktoken is Python code"));
  std::filesystem::remove(folder + "/qwen.tiktoken");
  test::spill(folder + "/tokenizer.model", "IQ== 0\nIg== 2\n");
  EXPECT_THAT(error(json::object()),
              HasSubstr("tokenizer.model:2: 'Ig== 2': expected a token in base64 and its rank 1"));
  test::spill(folder + "/tokenizer.model", "IQ== 0\nIQ== 1\n");
  EXPECT_THAT(error(json::object()), HasSubstr("token 1 repeats token 0"));
}

}  // namespace
}  // namespace redco

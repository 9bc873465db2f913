// Small tokenizers with every type of component, on unusual texts: exactly the results of Hugging Face's
// library (scripts/make_tokenizer_fixtures.py). REDCO_TOKENIZER_PARTS names another folder of such files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/tokenizers.h"

namespace redco {
namespace {

using nlohmann::json;

// The tokenizers share t5's character map; the files have "@t5" in its place.
void put_charsmap(json& normalizer) {
  static const std::string map = json::parse(
      test::slurp(test::tokenizer_fixture("t5") + "/tokenizer.json"))["normalizer"]["precompiled_charsmap"];
  if (!normalizer.is_object()) return;
  if (normalizer["type"] == "Precompiled") normalizer["precompiled_charsmap"] = map;
  if (normalizer["type"] == "Sequence")
    for (json& n : normalizer["normalizers"]) put_charsmap(n);
}

TEST(TokenizerParts, EveryCase) {
  const char* other = std::getenv("REDCO_TOKENIZER_PARTS");
  const std::string folder = other != nullptr ? other : test::tokenizer_fixture("parts");
  test::TempDir temp;
  int files = 0, cuts = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    ++files;
    SCOPED_TRACE(entry.path().filename().string());
    json all = json::parse(test::slurp(entry.path().string()));
    put_charsmap(all["tokenizer"]["normalizer"]);
    test::spill(temp / "tokenizer.json", all["tokenizer"].dump());
    const auto t = load_tokenizer(temp.path());
    int wrong = 0;
    for (const json& c : all["cases"]) {
      const auto text = c["text"].get<std::string>();
      const auto got = t->tokenize(text);
      const auto ids = c["ids"].get<std::vector<i32>>();
      const auto tokens = c.contains("tokens") ? c["tokens"].get<std::vector<std::string>>() : t->tokens(ids);
      bool right = got.ids == ids && got.tokens == tokens && t->encode(text) == ids;
      if (c.contains("decoded"))
        right = right && t->decode(ids) == c["decoded"].get<std::string>() &&
                t->decode(ids, true) == c.value("decoded_skip", c["decoded"].get<std::string>());
      EXPECT_TRUE(right) << c.dump() << "\n"
                         << json{{"ids", got.ids},
                                 {"tokens", got.tokens},
                                 {"decoded", t->decode(ids)},
                                 {"decoded_skip", t->decode(ids, true)}}
                                .dump();
      if (!right && ++wrong > 2) break;
      const auto cut = t->last_cut(text);
      if (!cut) continue;
      ++cuts;
      auto halves = t->encode(text.substr(0, *cut), false);
      const auto rest = t->encode(text.substr(*cut), false);
      halves.insert(halves.end(), rest.begin(), rest.end());
      EXPECT_EQ(halves, t->encode(text, false)) << c["text"] << " cut at " << *cut;
    }
  }
  EXPECT_GT(files, 60);
  EXPECT_GT(cuts, 100);
}

}  // namespace
}  // namespace redco

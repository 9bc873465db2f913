// Broken and hostile files of every kind of tokenizer: loading gives an error or a tokenizer, never a crash
// or a hang. Long repetitive texts take no longer than other texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <random>

#include "base/utf8.h"
#include "support/time_factor.h"
#include "support/tokenizers.h"
#include "tokenizers/normalizers/charsmap.h"
#include "tokenizers/normalizers/precompiled.h"
#include "tokenizers/sentencepiece/sp_model.h"
#include "unicode/normal_forms.h"

namespace redco {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::string kText =
    "The naïve \xE4\xB8\xAD\xE6\x96\x87 e\xCC\x81x [MASK] <s>\xF0\x9F\x98\x80 12.5\r\n\t'a' <0x41> q";

std::string mutated(std::string bytes, std::mt19937& random) {
  const auto n = 1 + random() % 2;
  for (unsigned k = 0; k < n && !bytes.empty(); ++k) {
    const std::size_t at = random() % bytes.size();
    switch (random() % 5) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
        break;
      case 2:
        bytes.erase(at, 1 + random() % 4);
        break;
      case 3:
        bytes.insert(at, bytes.substr(random() % bytes.size(), 1 + random() % 8));
        break;
      default:
        bytes.resize(at);
    }
  }
  return bytes;
}

template <class F>
void expect_clean(F&& f, int* worked = nullptr) {
  const auto [code, message] = test::failure_of(f);
  EXPECT_TRUE(code == ExitCode::contents || code == ExitCode::ok || code == ExitCode::usage) << message;
  if (worked != nullptr) *worked += code == ExitCode::ok;
}

void use(const Tokenizer& t) {
  const auto ids = t.tokenize(kText).ids;
  t.decode(ids);
  t.decode(ids, true);
  t.encode_pair(kText, "x");
  t.last_cut(kText);
}

TEST(HostileKinds, MutatedTokenizerJson) {
  test::TempDir folder;
  std::mt19937 random(3);
  int worked = 0;
  for (const char* name : {"unigram-fallback", "word-piece-short", "word-level", "ctc", "bpe-fallback-False",
                           "pre-sequence", "added-bert", "normalizer-replace", "bpe-suffix"}) {
    const json all = json::parse(test::slurp(test::tokenizer_fixture("parts") + "/" + name + ".json"));
    const std::string good = all["tokenizer"].dump();
    for (int k = 0; k < 30; ++k) {
      test::spill(folder / "tokenizer.json", mutated(good, random));
      expect_clean([&] { use(*load_tokenizer(folder.path())); }, &worked);
    }
  }
  EXPECT_GT(worked, 5);
}

// Puts values of a wrong type into each field of a file.
TEST(HostileKinds, ReplacedValues) {
  test::TempDir folder;
  int worked = 0, failed = 0;
  const json values = {
      nullptr, -1, 1e300, "", "x", true, json::array(), json::object(), json::array({1, "a"})};
  for (const char* name :
       {"unigram", "word-piece-cased", "word-level", "ctc", "bpe-fallback-True", "pre-metaspace-first-True",
        "pre-fixed", "pre-delimiter", "normalizer-bert-none"}) {
    const json all = json::parse(test::slurp(test::tokenizer_fixture("parts") + "/" + name + ".json"));
    const json flat = [&] {
      json t = all["tokenizer"];
      t["model"].erase("vocab");
      t["model"].erase("merges");
      return t.flatten();
    }();
    std::size_t n = 0;
    for (const auto& [pointer, old] : flat.items()) {
      json bad = all["tokenizer"];
      bad[json::json_pointer(pointer)] = values[n++ % values.size()];
      test::spill(folder / "tokenizer.json", bad.dump());
      const int before = worked;
      expect_clean([&] { use(*load_tokenizer(folder.path())); }, &worked);
      failed += worked == before;
    }
  }
  EXPECT_GT(failed, 100);
}

TEST(HostileKinds, MutatedModels) {
  test::TempDir folder;
  std::mt19937 random(5);
  int worked = 0;
  for (const char* name : {"unigram-bytes", "bpe", "bpe-bare", "t5"}) {
    const std::string good = test::slurp(test::tokenizer_fixture("sentencepiece") + "/" + name + ".model");
    for (int k = 0; k < 400; ++k) {
      const std::string bad = mutated(good, random);
      expect_clean([&] { parse_sp_model(bad, "m"); });
      if (k % 8 != 0) continue;
      test::spill(folder / "spiece.model", bad);
      expect_clean([&] { use(*load_tokenizer(folder / "spiece.model")); }, &worked);
      expect_clean([&] { use(*load_tokenizer(folder.path())); });
    }
  }
  EXPECT_GT(worked, 10);
}

TEST(HostileKinds, BadModels) {
  auto message = [](const std::string& bytes) {
    const auto [code, text] = test::failure_of([&] { parse_sp_model(bytes, "a.model"); });
    EXPECT_EQ(code, ExitCode::contents);
    EXPECT_THAT(text, HasSubstr("a.model"));
    return text;
  };
  EXPECT_THAT(message(""), HasSubstr("no pieces"));
  EXPECT_THAT(message("\x0A"), HasSubstr("end of the file"));
  EXPECT_THAT(message("\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"), HasSubstr("beyond the end"));
  EXPECT_THAT(message(std::string(11, '\xFF')), HasSubstr("64 bits"));
  EXPECT_THAT(message(std::string("\x0A\x00", 2)), HasSubstr("empty"));
  EXPECT_THAT(message("\x0A\x03\x0A\x01\xFF"), HasSubstr("UTF-8"));
  EXPECT_THAT(message("\x0A\x03\x0A\x01x"), HasSubstr("0 unknown"));
  EXPECT_THAT(message("\x0A\x05\x0A\x01x\x18\x02\x0A\x03\x0A\x01y\x0A\x03\x0A\x01y"), HasSubstr("repeated"));
  EXPECT_THAT(message("\x0A\x05\x0A\x01x\x18\x06"), HasSubstr("byte"));
  EXPECT_THAT(message("\x0A\x05\x0A\x01x\x18\x09"), HasSubstr("unknown type"));
  EXPECT_THAT(message(std::string("\x0A\x08\x0A\x01x\x15\x00\x00\xC0\x7F", 10)), HasSubstr("finite"));
  EXPECT_THAT(message("\x12\x02\x18\x03"), HasSubstr("model_type 3"));
  EXPECT_THAT(message("\x7B"), HasSubstr("wire type"));
}

TEST(HostileKinds, Charsmaps) {
  const std::string good = test::t5_charsmap();
  std::mt19937 random(11);
  int worked = 0;
  for (int k = 0; k < 300; ++k) {
    std::string bad = good;
    for (int j = 0; j < 400; ++j) bad[4 + random() % (bad.size() - 4)] = static_cast<char>(random());
    // Most mutations make the texts invalid UTF-8, so every second one leaves the texts unchanged.
    const u32 trie = static_cast<unsigned char>(bad[0]) |
                     static_cast<u32>(static_cast<unsigned char>(bad[1])) << 8 |
                     static_cast<u32>(static_cast<unsigned char>(bad[2])) << 16;
    if (k % 2 == 0) bad.replace(4 + trie, std::string::npos, good, 4 + trie, std::string::npos);
    expect_clean(
        [&] {
          const Precompiled p(Charsmap(bad, "m"));
          EXPECT_EQ(find_invalid_utf8(p.normalize(kText)), std::string::npos);
        },
        &worked);
  }
  EXPECT_GT(worked, 100);
  for (const std::string& bad :
       {std::string(), std::string("\x01"), std::string("\xFF\xFF\xFF\xFF"),
        std::string("\x03\x00\x00\x00xxxx", 8), std::string("\x00\x00\x00\x00\xFF", 5),
        std::string(4, '\0') + std::string(1000, 'x')})
    EXPECT_EQ(test::failure_of([&] { Charsmap(bad, "m"); }).first, ExitCode::contents);
  for (const char* bad : {"A", "AB=C", "A===", "AB!=", "AB CD==="})
    EXPECT_EQ(test::failure_of([&] { decode_base64(bad, "m"); }).first, ExitCode::contents) << bad;
  EXPECT_EQ(decode_base64(encode_base64("\x01\x02\xFF"), "m"), "\x01\x02\xFF");
  EXPECT_EQ(decode_base64("QUI=", "m"), "AB");
}

TEST(HostileKinds, VocabTxt) {
  test::TempDir folder;
  const json all = json::parse(test::slurp(test::tokenizer_fixture("sentencepiece") + "/bert.json"));
  const std::string good = all["files"]["vocab.txt"];
  std::mt19937 random(7);
  int worked = 0;
  for (int k = 0; k < 100; ++k) {
    test::spill(folder / "vocab.txt", mutated(good, random));
    expect_clean([&] { use(*load_tokenizer(folder.path())); }, &worked);
  }
  EXPECT_GT(worked, 20);
  auto message = [&](const std::string& vocab, const std::string& config) {
    test::spill(folder / "vocab.txt", vocab);
    test::spill(folder / "tokenizer_config.json", config);
    const auto [code, text] = test::failure_of([&] { load_tokenizer(folder.path()); });
    EXPECT_EQ(code, ExitCode::contents);
    return text;
  };
  EXPECT_THAT(message("a\n\xFF\n", "{}"), HasSubstr("vocab.txt: byte 2"));
  EXPECT_THAT(message(good, R"({"do_lower_case": 3})"), HasSubstr("do_lower_case"));
  EXPECT_THAT(message(good, R"({"tokenizer_class": "XLNetTokenizer"})"), HasSubstr("'XLNetTokenizer'"));
  EXPECT_THAT(message(good, R"({"cls_token": 7})"), HasSubstr("cls_token"));
}

TEST(HostileKinds, TextThatGrows) {
  test::TempDir folder;
  json t = json::parse(test::slurp(test::tokenizer_fixture("parts") + "/normalizer-nfc.json"))["tokenizer"];
  json steps = json::array();
  for (int k = 0; k < 6; ++k)
    steps.push_back(
        {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", std::string(1000, 'a')}});
  t["normalizer"] = {{"type", "Sequence"}, {"normalizers", steps}};
  test::spill(folder / "tokenizer.json", t.dump());
  const auto [code, message] = test::failure_of([&] { load_tokenizer(folder.path())->encode("a"); });
  EXPECT_EQ(code, ExitCode::contents);
  EXPECT_THAT(message, HasSubstr("becomes more than"));
  t["normalizer"]["normalizers"][0]["content"] = std::string(2000, 'a');
  test::spill(folder / "tokenizer.json", t.dump());
  EXPECT_THAT(test::failure_of([&] { load_tokenizer(folder.path()); }).second,
              HasSubstr("content: 2000 bytes"));
}

// Half a megabyte without a split position: every kind takes (nearly) linear time.
TEST(HostileKinds, LongRepetitiveTexts) {
  std::vector<std::string> texts = {std::string(500'000, 'a'), std::string(500'000, ' '), {}, {}};
  for (int k = 0; k < 125'000; ++k) {
    texts[2] += k % 2 == 0 ? "\xCC\x81" : "\xCC\xA3";  // marks of two combining classes
    texts[3] += "\xE2\x96\x81";
  }
  const std::string sp = test::tokenizer_fixture("sentencepiece");
  for (const std::string& what :
       {test::tokenizer_fixture("t5"), test::tokenizer_fixture("bert"), test::tokenizer_fixture("llama2"),
        sp + "/unigram-bytes.model", sp + "/bpe-bytes.model", sp + "/bpe.model"}) {
    const auto t = load_tokenizer(what);
    for (const std::string& text : texts) {
      const auto begin = std::chrono::steady_clock::now();
      const auto ids = t->encode(text);
      t->decode(ids);
      EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10 * test::kTimeFactor))
          << what;
    }
  }
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(to_normal_form(texts[2], NormalForm::nfd).substr(0, 4), "\xCC\xA3\xCC\xA3");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5 * test::kTimeFactor));
}

}  // namespace
}  // namespace redco

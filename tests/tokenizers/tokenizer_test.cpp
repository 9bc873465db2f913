// Cases that the fixtures don't cover: legacy files, `bytes`, saving, threads, normalizers, split behaviors,
// flags of added tokens. Comments name the expected values that come from Hugging Face's tokenizers 0.23.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "support/tokenizers.h"
#include "tokenizers/pre_tokenizers/split_behavior.h"

namespace redco {
namespace {

using nlohmann::json;
using test::tokenizer_fixture;
using Ids = std::vector<i32>;

TEST(Bytes, EachByteIsAToken) {
  const auto t = load_tokenizer("bytes");
  EXPECT_EQ(t->vocab_size(), 257);
  EXPECT_EQ(t->special().eos, 256);
  std::string every;
  for (int b = 0; b < 256; ++b) every += static_cast<char>(b);
  const Ids ids = t->encode(every);
  for (i32 b = 0; b < 256; ++b) EXPECT_EQ(ids[static_cast<std::size_t>(b)], b);
  EXPECT_EQ(t->encode("a<|endoftext|>\n"), (Ids{'a', 256, '\n'}));
  EXPECT_EQ(t->decode(t->encode("caf\xC3\xA9")), "caf\xC3\xA9");
  EXPECT_EQ(t->decode(Ids{'c', 0xC3}), "c\xEF\xBF\xBD");
  EXPECT_EQ(t->decode(Ids{'a', 256}, true), "a");
}

TEST(Bytes, SavedAndReadBack) {
  test::TempDir folder;
  const auto t = load_tokenizer("bytes");
  t->save(folder.path());
  const auto back = load_tokenizer(folder.path());
  EXPECT_EQ(back->fingerprint(), t->fingerprint());
  EXPECT_EQ(back->special().eos, 256);
  EXPECT_EQ(back->encode("\xFF x"), (Ids{255, 32, 'x'}));
  EXPECT_TRUE(back->takes_any_bytes());
}

TEST(Save, CopiesTheLoadedFiles) {
  test::TempDir from, to;
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
    std::filesystem::copy(tokenizer_fixture("roberta") + "/" + name, from / name);
  const auto t = load_tokenizer(from.path());
  t->save(to.path());
  EXPECT_EQ(test::slurp(to / "tokenizer.json"), test::slurp(from / "tokenizer.json"));
  EXPECT_EQ(load_tokenizer(to.path())->special().mask, 519);
  test::spill(from / "tokenizer.json", "{}");
  EXPECT_EQ(test::failure_of([&] { t->save(to.path()); }).first, ExitCode::contents);
}

// Splits the fixture's tokenizer.json into GPT-2's two files.
class Legacy : public testing::Test {
 protected:
  void split(const std::string& kind) {
    const json all = json::parse(test::slurp(tokenizer_fixture(kind) + "/tokenizer.json"));
    json vocab = all["model"]["vocab"];
    json added = json::object();
    for (const json& t : all["added_tokens"])
      if (!vocab.contains(t["content"].get<std::string>())) {
        if (kind == "gpt2" || kind == "roberta")
          vocab[t["content"].get<std::string>()] = t["id"];
        else
          added[t["content"].get<std::string>()] = t["id"];
      }
    std::string merges = "#version: 0.2\n";
    for (const json& m : all["model"]["merges"])
      merges += m[0].get<std::string>() + " " + m[1].get<std::string>() + "\n";
    test::spill(folder_ / "vocab.json", vocab.dump());
    test::spill(folder_ / "merges.txt", merges);
    if (!added.empty()) test::spill(folder_ / "added_tokens.json", added.dump());
    std::filesystem::copy(tokenizer_fixture(kind) + "/tokenizer_config.json",
                          folder_ / "tokenizer_config.json");
  }
  // Checks all cases of the fixture.
  void compare(const std::string& kind) {
    const auto t = load_tokenizer(folder_.path());
    std::ifstream in(tokenizer_fixture(kind) + "/cases.jsonl");
    for (std::string line; std::getline(in, line);) {
      const json c = json::parse(line);
      EXPECT_EQ(t->encode(c["text"].get<std::string>()), c["ids"].get<Ids>()) << c["text"];
    }
  }
  test::TempDir folder_;
};

TEST_F(Legacy, Gpt2) {
  split("gpt2");
  compare("gpt2");
}
TEST_F(Legacy, Roberta) {
  split("roberta");
  compare("roberta");
}
TEST_F(Legacy, Qwen) {
  split("qwen");
  compare("qwen");
}

TEST_F(Legacy, AddBosToken) {
  split("gpt2");
  test::spill(folder_ / "tokenizer_config.json",
              R"({"tokenizer_class": "GPT2Tokenizer", "add_bos_token": true, "bos_token": "<|endoftext|>"})");
  EXPECT_EQ(load_tokenizer(folder_.path())->encode("a"), (Ids{511, 64}));
}

TEST_F(Legacy, BadFiles) {
  split("gpt2");
  test::spill(folder_ / "merges.txt", "#version: 0.2\nt h\nnospace\n");
  auto [code, message] = test::failure_of([&] { load_tokenizer(folder_.path()); });
  EXPECT_EQ(code, ExitCode::contents);
  EXPECT_THAT(message, testing::HasSubstr("merges.txt:3"));
  test::spill(folder_ / "merges.txt", "");
  test::spill(folder_ / "vocab.json", "[]");
  EXPECT_EQ(test::failure_of([&] { load_tokenizer(folder_.path()); }).first, ExitCode::contents);
  test::spill(folder_ / "vocab.json", "{\"a\": 0}");
  test::spill(folder_ / "tokenizer_config.json", R"({"tokenizer_class": "T5Tokenizer"})");
  std::tie(code, message) = test::failure_of([&] { load_tokenizer(folder_.path()); });
  EXPECT_EQ(code, ExitCode::contents);
  EXPECT_THAT(message, testing::HasSubstr("T5Tokenizer"));
  std::filesystem::remove(folder_ / "merges.txt");
  EXPECT_EQ(test::failure_of([&] { load_tokenizer(folder_.path()); }).first, ExitCode::usage);
}

TEST(Tokenizer, ThreadsShareOne) {
  const auto t = load_tokenizer(tokenizer_fixture("llama3"));
  std::vector<std::string> texts;
  std::vector<Ids> expected;
  for (int k = 0; k < 200; ++k) {
    texts.push_back("Text " + std::to_string(k * 37) + " isn't the same, the " + std::string(k % 60, 'a'));
    expected.push_back(t->encode(texts.back()));
  }
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int n = 0; n < 4; ++n)
    threads.emplace_back([&] {
      for (int round = 0; round < 5; ++round)
        for (std::size_t k = 0; k < texts.size(); ++k) wrong += t->encode(texts[k]) != expected[k];
    });
  for (auto& th : threads) th.join();
  EXPECT_EQ(wrong, 0);
}

// gpt2's tokenizer.json with some parts replaced.
class Parts : public testing::Test {
 protected:
  std::unique_ptr<Tokenizer> with(const std::vector<std::pair<std::string, json>>& changes) {
    json v = json::parse(test::slurp(tokenizer_fixture("gpt2") + "/tokenizer.json"));
    for (const auto& [pointer, value] : changes) v[json::json_pointer(pointer)] = value;
    test::spill(folder_ / "tokenizer.json", v.dump());
    return load_tokenizer(folder_.path());
  }
  std::string pieces(const Tokenizer& t, const std::string& text) {
    std::string out;
    for (const auto& s : t.tokenize(text).tokens) out += s + "|";
    return out;
  }
  static json byte_level(bool prefix, bool regex) {
    return {
        {"type", "ByteLevel"}, {"add_prefix_space", prefix}, {"trim_offsets", true}, {"use_regex", regex}};
  }
  test::TempDir folder_;
};

TEST_F(Parts, AddedTokensFlags) {
  auto token = [](const char* content, int id, bool word, bool left, bool right, bool normalized) {
    return json{{"id", id},        {"content", content}, {"single_word", word},     {"lstrip", left},
                {"rstrip", right}, {"special", false},   {"normalized", normalized}};
  };
  const json list = {{{"id", 511},
                      {"content", "<|endoftext|>"},
                      {"single_word", false},
                      {"lstrip", false},
                      {"rstrip", false},
                      {"normalized", true},
                      {"special", true}},
                     token("<w>", 512, true, false, false, false),
                     token("<l>", 513, false, true, false, true),
                     token("<r>", 514, false, false, true, true),
                     token("<rr>", 515, false, true, true, false)};
  const auto t = with({{"/added_tokens", list}});
  auto has = [&](const std::string& text, i32 id) {
    const Ids ids = t->encode(text);
    return std::count(ids.begin(), ids.end(), id);
  };
  EXPECT_EQ(has("x <w> y", 512), 1);
  EXPECT_EQ(has("<w>", 512), 1);
  EXPECT_EQ(has("x<w> y", 512), 0);  // <w> stands inside a word
  EXPECT_EQ(has("x <w>_", 512), 0);
  EXPECT_EQ(has("\xC3\xA9<w>", 512), 0);
  EXPECT_EQ(has(".<w>.", 512), 1);
  EXPECT_EQ(t->tokenize("!  <l> !").tokens, (std::vector<std::string>{"!", "  <l>", "\xC4\xA0", "!"}));
  EXPECT_EQ(t->tokenize("!  <r> \t!").tokens,
            (std::vector<std::string>{"!", "\xC4\xA0\xC4\xA0", "<r> \t", "!"}));
  EXPECT_EQ(t->tokenize("! <rr> <rr> !").tokens, (std::vector<std::string>{"!", " <rr> ", "<rr> ", "!"}));
  EXPECT_EQ(t->last_cut("abc abc"), std::nullopt);  // <r> includes the white space after it
}

TEST_F(Parts, LongestAddedTokenWins) {
  auto token = [](const char* content, int id) {
    return json{{"id", id}, {"content", content}, {"normalized", false}, {"special", false}};
  };
  const auto t =
      with({{"/added_tokens",
             {token("<|endoftext|>", 511), token("#x", 512), token("#xyz", 513), token("yz", 514)}}});
  EXPECT_EQ(t->encode("#xyz"), (Ids{513}));
  EXPECT_EQ(t->encode("#xyyz#x"), (Ids{512, t->encode("y")[0], 514, 512}));
}

TEST_F(Parts, PrefixSpaceAndDigits) {
  EXPECT_EQ(with({{"/pre_tokenizer", byte_level(true, true)}})->encode("a"), with({})->encode(" a"));
  EXPECT_EQ(with({{"/pre_tokenizer", byte_level(true, true)}})->encode(" a"), with({})->encode(" a"));
  EXPECT_EQ(with({{"/pre_tokenizer", byte_level(true, true)}})->encode(""), Ids{});
  // StarCoder's pre-tokenizer: single digits, then bytes.
  const json digits = {{"type", "Digits"}, {"individual_digits", true}};
  const json both = {{"type", "Sequence"}, {"pretokenizers", {digits, byte_level(false, true)}}};
  const auto t = with({{"/pre_tokenizer", both}});
  const auto ids = t->encode("x12 3");
  EXPECT_EQ(t->decode(ids), "x12 3");
  EXPECT_EQ(pieces(*t, "x12 3"), "x|1|2|\xC4\xA0|3|");
}

// ByteLevel comes first, so the next step gets the byte alphabet. \xC4\xA0 is its space.
TEST_F(Parts, ByteLevelThenSplit) {
  const json split = {
      {"type", "Split"}, {"pattern", {{"String", "\xC4\xA0"}}}, {"behavior", "Removed"}, {"invert", false}};
  const json both = {{"type", "Sequence"}, {"pretokenizers", {byte_level(false, false), split}}};
  const auto t = with({{"/pre_tokenizer", both}});
  EXPECT_EQ(t->decode(t->encode("a b  c")), "abc");
}

TEST_F(Parts, Normalizers) {
  auto norm = [&](json n, const std::string& text) {
    const auto t = with({{"/normalizer", std::move(n)}});
    return t->decode(t->encode(text));
  };
  EXPECT_EQ(norm({{"type", "NFC"}}, "e\xCC\x81 x"), "\xC3\xA9 x");
  EXPECT_EQ(norm({{"type", "NFD"}}, "\xC3\xA9 x"), "e\xCC\x81 x");
  EXPECT_EQ(norm({{"type", "NFKC"}}, "\xEF\xAC\x81\xC2\xB2"), "fi2");
  EXPECT_EQ(norm({{"type", "Lowercase"}}, "AbC\xC3\x89"), "abc\xC3\xA9");
  EXPECT_EQ(norm({{"type", "Strip"}, {"strip_left", true}, {"strip_right", false}}, " \ta "), "a ");
  EXPECT_EQ(norm({{"type", "Prepend"}, {"prepend", "_"}}, "a"), "_a");
  EXPECT_EQ(norm({{"type", "Replace"}, {"pattern", {{"String", "aa"}}}, {"content", "b"}}, "aaaaa"), "bba");
  EXPECT_EQ(norm({{"type", "Replace"}, {"pattern", {{"Regex", "a+"}}}, {"content", "b"}}, "aaxa"), "bxb");
  const json nfd = {{"type", "NFD"}}, strip = {{"type", "StripAccents"}};
  EXPECT_EQ(norm({{"type", "Sequence"}, {"normalizers", {nfd, strip}}}, "\xC3\xA9"), "e");
}

TEST(SplitBehavior, EqualsHuggingFace) {
  // The doc string of SplitDelimiterBehavior: "the-final--countdown" at "-".
  const std::string text = "the-final--countdown";
  const std::vector<std::pair<std::size_t, std::size_t>> dashes = {{3, 4}, {9, 10}, {10, 11}};
  auto split = [&](SplitBehavior b, bool invert = false) {
    std::string out;
    for (const auto& [begin, end] : pieces_of(b, spans_of(dashes, text.size(), invert)))
      out += text.substr(begin, end - begin) + "|";
    return out;
  };
  EXPECT_EQ(split(SplitBehavior::removed), "the|final|countdown|");
  EXPECT_EQ(split(SplitBehavior::isolated), "the|-|final|-|-|countdown|");
  EXPECT_EQ(split(SplitBehavior::merged_with_previous), "the-|final-|-|countdown|");
  EXPECT_EQ(split(SplitBehavior::merged_with_next), "the|-final|-|-countdown|");
  EXPECT_EQ(split(SplitBehavior::contiguous), "the|-|final|--|countdown|");
  EXPECT_EQ(split(SplitBehavior::removed, true), "-|-|-|");
}

}  // namespace
}  // namespace redco

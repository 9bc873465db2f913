// Tokenizer files that are broken, hostile or not supported: an error with file and field, never a crash, a
// hang or a silent default.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "support/time_factor.h"
#include "support/tokenizers.h"
#include "tokenizers/load/tokenizer_spec.h"
#include "tokenizers/models/bpe.h"
#include "unicode/regex.h"

namespace redco {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class Hostile : public testing::Test {
 protected:
  // A small valid tokenizer: ids 0..3 are a, b, ab, <unk>.
  json good_ = json::parse(R"({
    "version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [{"id": 4, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false,
                      "normalized": false, "special": true}],
    "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
    "post_processor": null,
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null,
              "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
              "vocab": {"a": 0, "b": 1, "ab": 2, "<unk>": 3}, "merges": [["a", "b"]]}})");
  test::TempDir folder_;

  std::unique_ptr<Tokenizer> load(const std::string& text) {
    test::spill(folder_ / "tokenizer.json", text);
    return load_tokenizer(folder_.path());
  }
  std::unique_ptr<Tokenizer> load(const json& v) { return load(v.dump()); }

  void expect_error(const std::string& text, const std::string& part) {
    const auto [code, message] = test::failure_of([&] { load(text); });
    EXPECT_EQ(code, ExitCode::contents) << part;
    EXPECT_THAT(message, HasSubstr("tokenizer.json"));
    EXPECT_THAT(message, HasSubstr(part));
  }
  void expect_error(const json& v, const std::string& part) { expect_error(v.dump(), part); }
  // good_ with another value at `pointer`.
  json with(const std::string& pointer, json value) const {
    json v = good_;
    v[json::json_pointer(pointer)] = std::move(value);
    return v;
  }
};

TEST_F(Hostile, TheValidTokenizerLoads) {
  const auto t = load(good_);
  EXPECT_EQ(t->encode("abaXb<s>"), (std::vector<i32>{2, 0, 3, 1, 4}));
  EXPECT_EQ(t->vocab_size(), 5);
}

TEST_F(Hostile, MissingPaths) {
  EXPECT_EQ(test::failure_of([&] { load_tokenizer(folder_ / "none"); }).first, ExitCode::usage);
  EXPECT_EQ(test::failure_of([&] { load_tokenizer(""); }).first, ExitCode::usage);
  const auto [code, message] = test::failure_of([&] { load_tokenizer(folder_.path()); });
  EXPECT_EQ(code, ExitCode::usage);
  EXPECT_THAT(message, HasSubstr("vocab.json"));
}

TEST_F(Hostile, NotJson) {
  expect_error(std::string(), "JSON");
  expect_error(std::string("{"), "byte");
  expect_error(std::string("[1, 2"), "byte");
  expect_error(good_.dump().substr(0, 300), "byte");
  expect_error(std::string("\xFF\xFE{}"), "byte");
  expect_error(std::string("{\"a\": \"\xC3\x28\"}"), "byte");
  expect_error(std::string("[]"), "");
  expect_error(std::string("{}"), "model.vocab");
  expect_error(std::string("{\"a\": {}, \"a\": {}}"), "twice");
}

TEST_F(Hostile, Depth) {
  const std::size_t n = 1'000'000;
  expect_error(std::string(n, '['), "deeper");
  std::string objects;
  for (std::size_t k = 0; k < n / 10; ++k) objects += "{\"a\":";
  expect_error(objects, "deeper");
  json v = json{{"type", "NFC"}};
  for (int k = 0; k < 20; ++k) v = json{{"type", "Sequence"}, {"normalizers", json::array({v})}};
  load(with("/normalizer", v));  // 20 levels are allowed
}

TEST_F(Hostile, TooManyValues) {
  std::string v = "{\"x\": [1";
  for (int k = 0; k < 1'000'001; ++k) v += ",1";
  expect_error(v + "]}", "more than");
}

TEST_F(Hostile, UnknownTypes) {
  expect_error(with("/normalizer", {{"type", "Magic"}}), "normalizer: the type 'Magic'");
  expect_error(with("/pre_tokenizer", {{"type", "Magic"}}), "pre_tokenizer: the type 'Magic'");
  expect_error(with("/post_processor", {{"type", "Magic"}}), "post_processor: the type 'Magic'");
  expect_error(with("/decoder", {{"type", "Magic"}}), "decoder: the type 'Magic'");
  expect_error(with("/model/type", "Magic"), "model: the type 'Magic'");
  const json nested = {
      {"type", "Sequence"},
      {"pretokenizers", {{{"type", "Digits"}, {"individual_digits", true}}, {{"type", "Magic"}}}}};
  expect_error(with("/pre_tokenizer", nested), "pre_tokenizer.pretokenizers[1]: the type 'Magic'");
}

TEST_F(Hostile, UnknownFieldsAndTypesOfFields) {
  expect_error(with("/surprise", 1), "unknown field 'surprise'");
  expect_error(with("/model/surprise", 1), "unknown field 'surprise'");
  expect_error(with("/pre_tokenizer/surprise", "x"), "unknown field 'surprise'");
  expect_error(with("/pre_tokenizer/add_prefix_space", 1), "pre_tokenizer.add_prefix_space");
  expect_error(with("/pre_tokenizer", "ByteLevel"), "pre_tokenizer");
  expect_error(with("/model", 3), "model.vocab");
  // Dropout makes ids random in training scripts; here they are those without it.
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(load(with("/model/dropout", 0.1))->encode("ab"), load(good_)->encode("ab"));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::HasSubstr("dropout: 0.1 is ignored"));
  expect_error(with("/model/dropout", "much"), "dropout");
  expect_error(with("/model/byte_fallback", "yes"), "byte_fallback");
  expect_error(with("/added_tokens", 3), "added_tokens");
  expect_error(with("/added_tokens/0/id", "4"), "added_tokens[0].id");
  expect_error(with("/added_tokens/0/id", 1e300), "added_tokens[0].id");
  expect_error(with("/added_tokens/0/content", nullptr), "content");
  expect_error(with("/added_tokens/0/lstrip", 0), "lstrip");
}

TEST_F(Hostile, Vocabulary) {
  expect_error(with("/model/vocab", json::object()), "");
  expect_error(with("/model/vocab/b", 0), "both have id 0");
  expect_error(with("/model/vocab/b", -1), "id -1");
  expect_error(with("/model/vocab/b", i64{1} << 40), "expected 0 to");
  expect_error(with("/model/vocab/b", 18446744073709551615ull), "expected 0 to");
  expect_error(with("/model/vocab/b", 1.5), "model.vocab['b']");
  expect_error(with("/model/vocab/b", "1"), "model.vocab['b']");
  expect_error(with("/model/vocab/b", json::array({1})), "model.vocab['b']");
  expect_error(with("/model/vocab", json::array({json::array({"a", 0.5})})), "object of tokens");
  expect_error(with("/model/vocab", 7), "model.vocab");
  std::string twice = good_.dump();
  const auto at = twice.find("\"a\":0");
  twice.insert(at, "\"a\":9,");
  expect_error(twice, "'a' appears twice");
  const auto t = load(with("/model/unk_token", "nope"));
  EXPECT_EQ(t->encode("ab"), (std::vector<i32>{2}));
  const auto [code, message] = test::failure_of([&] { t->encode("abx"); });
  EXPECT_EQ(code, ExitCode::contents);
  EXPECT_THAT(message, HasSubstr("'nope'"));
}

// Gaps in the model's ids are allowed: ids without a token decode to nothing, and the embedding has rows for
// them.
TEST_F(Hostile, GapsInTheVocabulary) {
  json v = with("/model/vocab/<unk>", 1000);
  v.erase("added_tokens");
  const auto t = load(v);
  EXPECT_EQ(t->vocab_size(), 1001);
  EXPECT_EQ(t->id_to_token(500), std::nullopt);
  EXPECT_EQ(t->decode(std::vector<i32>{0, 500, 2000, -7, 1}), "ab");
  EXPECT_EQ(test::failure_of([&] { t->tokens(std::vector<i32>{500}); }).first, ExitCode::bug);
}

TEST_F(Hostile, AddedTokens) {
  // Hugging Face renumbers tokens that leave gaps or share ids; the first of two equal ones counts.
  const auto ids = [&](json v) {
    ::testing::internal::CaptureStderr();
    const auto t = load(v);
    const auto content = good_["added_tokens"][0]["content"].get<std::string>();
    return std::pair(t->token_to_id(content), ::testing::internal::GetCapturedStderr());
  };
  for (const int id : {9, 2}) {
    const auto [got, log] = ids(with("/added_tokens/0/id", id));
    EXPECT_EQ(got, 4);
    EXPECT_THAT(log, ::testing::HasSubstr("gets 4, as in transformers: the next free id"));
  }
  expect_error(with("/added_tokens/0/content", ""), "content");
  expect_error(with("/added_tokens/0/content", std::string(5000, 'x')), "5000 bytes");
  json v = good_;
  v["added_tokens"].push_back(v["added_tokens"][0]);
  const auto [got, log] = ids(v);
  EXPECT_EQ(got, 4);
  EXPECT_THAT(log, ::testing::HasSubstr("listed twice"));
}

TEST_F(Hostile, Merges) {
  expect_error(with("/model/merges", json::parse(R"([["a", "zz"]])")), "'zz'");
  expect_error(with("/model/merges", json::parse(R"([["b", "a"]])")), "'ba'");
  expect_error(with("/model/merges", json::parse(R"([["a", "b", "a"]])")), "merges[");
  expect_error(with("/model/merges", json::parse(R"([["a"]])")), "merges[0]");
  expect_error(with("/model/merges", {"ab"}), "merges[0]");
  expect_error(with("/model/merges", {"a b a"}), "merges[0]");
  expect_error(with("/model/merges", {1}), "merges[0]");
  expect_error(with("/model/merges", json::array({json::array({1, 2})})), "merges[0]");
  expect_error(with("/model/merges", json::array({json::array({json::array(), "b"})})), "merges[0]");
  expect_error(with("/model/merges", json{{"x", "y"}}), "model.merges");
  expect_error(with("/model/merges", "a b"), "model.merges");
  expect_error(with("/model/merges", nullptr), "model.merges");
  EXPECT_EQ(load(with("/model/merges", {"#version: 0.2", "a b"}))->encode("ab"), (std::vector<i32>{2}));
  EXPECT_EQ(load(with("/model/merges", json::array()))->encode("ab"), (std::vector<i32>{0, 1}));
}

TEST_F(Hostile, Templates) {
  auto post = [&](json single, json special) {
    return with("/post_processor", {{"type", "TemplateProcessing"},
                                    {"single", std::move(single)},
                                    {"pair", json::array()},
                                    {"special_tokens", std::move(special)}});
  };
  const json a = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const json s = {{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}};
  const json table = {{"<s>", {{"id", "<s>"}, {"ids", {4}}, {"tokens", {"<s>"}}}}};
  expect_error(post({s, a}, table), "post_processor.pair");
  expect_error(post({s, a}, json::object()), "'<s>' is not listed");
  expect_error(post({s, a, a}, table), "A 2 times");
  expect_error(post({s, a}, {{"<s>", {{"id", "<s>"}, {"ids", {5}}, {"tokens", {"<s>"}}}}}), "below 5");
  expect_error(post({{{"Sequence", {{"id", "C"}, {"type_id", 0}}}}}, table), "expected A or B");
  expect_error(
      with("/post_processor", {{"type", "RobertaProcessing"}, {"sep", {"x", 99}}, {"cls", {"<s>", 4}}}),
      "below 5");
}

TEST_F(Hostile, RegularExpressions) {
  auto split = [&](const std::string& pattern) {
    return with(
        "/pre_tokenizer",
        {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}});
  };
  expect_error(split("(a"), "is not a valid regular expression");
  expect_error(split("[z-a]"), "is not a valid regular expression");
  expect_error(split(std::string(20000, 'a')), "at most");
  expect_error(split(std::string(1000, '(') + std::string(1000, ')')), "is not a valid regular expression");
  expect_error(
      with("/pre_tokenizer", {{"type", "Split"}, {"pattern", {{"Regex", "a"}}}, {"behavior", "Sideways"}}),
      "Sideways");
  // A pattern with exponential backtracking is stopped: thousands of a's match as a and aa in all
  // combinations.
  const auto t = load(split("(?:a|aa)+[bc][bc]"));
  const auto begin = std::chrono::steady_clock::now();
  const auto [code, message] = test::failure_of([&] { t->encode(std::string(4000, 'a') + "b"); });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60 * test::kTimeFactor));
  EXPECT_EQ(code, ExitCode::contents);
  EXPECT_THAT(message, HasSubstr("was stopped"));
}

TEST_F(Hostile, InvalidText) {
  const auto t = load(good_);
  for (const char* text : {"ab\xC3", "\xFF", "a\xED\xA0\x80", "\xC0\x80", "\xF4\x90\x80\x80"}) {
    const auto [code, message] = test::failure_of([&] { t->encode(text); });
    EXPECT_EQ(code, ExitCode::contents);
    EXPECT_THAT(message, HasSubstr("UTF-8"));
  }
}

TEST_F(Hostile, Roles) {
  test::spill(folder_ / "tokenizer_config.json", R"({"eos_token": "</s>"})");
  // A token that the vocabulary lacks is added, as in transformers.
  const i32 next = load(good_)->vocab_size();
  EXPECT_EQ(load(good_)->special().eos, next - 1);
  test::spill(folder_ / "tokenizer_config.json",
              R"({"eos_token": {"content": "<s>", "__type": "AddedToken"}})");
  EXPECT_EQ(load(good_)->special().eos, 4);
  test::spill(folder_ / "tokenizer_config.json", R"({"eos_token": 3})");
  EXPECT_EQ(test::failure_of([&] { load(good_); }).first, ExitCode::contents);
  test::spill(folder_ / "tokenizer_config.json", R"({"added_tokens_decoder": {"9": {"content": "<new>"}}})");
  EXPECT_EQ(load(good_)->token_to_id("<new>"), next - 1);
  test::spill(folder_ / "tokenizer_config.json", "[");
  EXPECT_EQ(test::failure_of([&] { load(good_); }).first, ExitCode::contents);
}

// Truncated files, and files with single bytes changed: an error or a tokenizer, nothing else.
TEST_F(Hostile, Mutations) {
  const std::string good = good_.dump();
  unsigned random = 1;
  int loaded = 0;
  for (std::size_t k = 0; k < good.size(); ++k) {
    EXPECT_EQ(test::failure_of([&] { parse_tokenizer_json(good.substr(0, k), "t"); }).first,
              ExitCode::contents)
        << k;
    std::string bad = good;
    random = random * 1664525 + 1013904223;
    bad[k] = static_cast<char>(random >> 24);
    const auto code = test::failure_of([&] { load(bad)->encode("abab<s>"); }).first;
    EXPECT_TRUE(code == ExitCode::contents || code == ExitCode::ok) << k;
    loaded += code == ExitCode::ok;
  }
  EXPECT_GT(loaded, 0);
}

// 300 thousand characters without a split position take n log n steps, not n^2.
TEST_F(Hostile, OneLongPiece) {
  const auto t = load_tokenizer(test::tokenizer_fixture("gpt2"));
  std::string text;
  for (int k = 0; k < 30000; ++k) text += "thethetheo";
  const auto begin = std::chrono::steady_clock::now();
  const auto ids = t->encode(text);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20 * test::kTimeFactor));
  EXPECT_EQ(t->decode(ids), text);
}

}  // namespace
}  // namespace redco

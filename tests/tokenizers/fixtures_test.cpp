// All cases of the fixture tokenizers: exactly the results of Hugging Face's library with the same
// tokenizer.json.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/tokenizers.h"

namespace redco {
namespace {

using nlohmann::json;
using test::tokenizer_fixture;

std::vector<json> lines(const std::string& path) {
  std::vector<json> out;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) out.push_back(json::parse(line));
  return out;
}

class TokenizerFixture : public testing::TestWithParam<const char*> {};

TEST_P(TokenizerFixture, EveryCase) {
  const auto t = load_tokenizer(tokenizer_fixture(GetParam()));
  const auto cases = lines(tokenizer_fixture(GetParam()) + "/cases.jsonl");
  ASSERT_GT(cases.size(), 150u);
  for (const json& c : cases) {
    const auto text = c["text"].get<std::string>();
    SCOPED_TRACE(c["text"].dump());
    const auto ids = t->encode(text);
    EXPECT_EQ(ids, c["ids"].get<std::vector<i32>>());
    const auto both = t->tokenize(text);
    EXPECT_EQ(both.ids, ids);
    EXPECT_EQ(both.tokens, c["tokens"].get<std::vector<std::string>>());
    EXPECT_EQ(t->encode(text, false), c["ids_plain"].get<std::vector<i32>>());
    EXPECT_EQ(t->decode(ids), c["decoded"].get<std::string>());
    EXPECT_EQ(t->decode(ids, true), c["decoded_skip"].get<std::string>());
  }
}

TEST_P(TokenizerFixture, EveryPair) {
  const auto t = load_tokenizer(tokenizer_fixture(GetParam()));
  const auto cases = lines(tokenizer_fixture(GetParam()) + "/pairs.jsonl");
  ASSERT_GT(cases.size(), 5u);
  for (const json& c : cases) {
    SCOPED_TRACE(c.dump());
    std::optional<i64> max_length;
    if (!c["max_length"].is_null()) max_length = c["max_length"].get<i64>();
    const auto e = t->encode_pair(c["text"].get<std::string>(), c["pair"].get<std::string>(), max_length);
    EXPECT_EQ(e.ids, c["ids"].get<std::vector<i32>>());
    EXPECT_EQ(e.type_ids, c["type_ids"].get<std::vector<i32>>());
  }
}

// All cases of a file as one text: split at last_cut(), it gives the same ids.
TEST_P(TokenizerFixture, BlocksHaveTheIdsOfTheWholeText) {
  const auto t = load_tokenizer(tokenizer_fixture(GetParam()));
  std::string text;
  for (const json& c : lines(tokenizer_fixture(GetParam()) + "/cases.jsonl"))
    text += c["text"].get<std::string>() + "\n";
  const auto whole = t->encode(text, false);
  int cuts = 0;
  for (std::size_t n = 1; n < text.size(); n += 7) {
    const auto cut = t->last_cut(std::string_view(text).substr(0, n));
    if (!cut) continue;
    ++cuts;
    ASSERT_LT(*cut, n);
    auto ids = t->encode(std::string_view(text).substr(0, *cut), false);
    const auto rest = t->encode(std::string_view(text).substr(*cut), false);
    ids.insert(ids.end(), rest.begin(), rest.end());
    ASSERT_EQ(ids, whole) << "cut at " << *cut;
  }
  // Llama 2's pipeline allows no split.
  EXPECT_EQ(cuts > 100, std::string(GetParam()) != "llama2") << cuts;
}

INSTANTIATE_TEST_SUITE_P(Kinds, TokenizerFixture,
                         testing::Values("gpt2", "roberta", "llama3", "qwen", "llama2", "t5", "bert"));

TEST(Tokenizer, RolesAndSizes) {
  const auto gpt2 = load_tokenizer(tokenizer_fixture("gpt2"));
  EXPECT_EQ(gpt2->vocab_size(), 512);
  EXPECT_EQ(gpt2->special().eos, 511);
  EXPECT_EQ(gpt2->special().bos, 511);
  EXPECT_EQ(gpt2->special().pad, std::nullopt);
  EXPECT_TRUE(gpt2->is_special(511));
  EXPECT_FALSE(gpt2->is_special(5));
  const auto roberta = load_tokenizer(tokenizer_fixture("roberta"));
  EXPECT_EQ(roberta->vocab_size(), 520);
  EXPECT_EQ(roberta->special().mask, 519);
  EXPECT_EQ(roberta->special().pad, 1);
  const auto qwen = load_tokenizer(tokenizer_fixture("qwen"));
  EXPECT_EQ(qwen->vocab_size(), 602);
  EXPECT_EQ(qwen->special().bos, std::nullopt);
  EXPECT_EQ(qwen->token_to_id("<tool_call>"), 600);
  EXPECT_EQ(qwen->id_to_token(600), "<tool_call>");
  EXPECT_EQ(qwen->id_to_token(602), std::nullopt);
  EXPECT_EQ(qwen->token_to_id("no such token"), std::nullopt);
}

TEST(Tokenizer, LoadsAFileByItsPath) {
  const auto folder = load_tokenizer(tokenizer_fixture("gpt2"));
  const auto file = load_tokenizer(tokenizer_fixture("gpt2") + "/tokenizer.json");
  EXPECT_EQ(folder->fingerprint(), file->fingerprint());
  EXPECT_NE(folder->fingerprint(), load_tokenizer(tokenizer_fixture("qwen"))->fingerprint());
  EXPECT_EQ(folder->fingerprint().size(), 32u);
}

TEST(Tokenizer, TruncationOfOneText) {
  const auto t = load_tokenizer(tokenizer_fixture("roberta"));
  const auto all = t->encode("How are you?");
  const auto cut = t->encode_truncated("How are you?", 4);
  EXPECT_EQ(cut.ids, (std::vector<i32>{all[0], all[1], all[2], all.back()}));
  EXPECT_EQ(cut.type_ids, std::vector<i32>(4, 0));
  EXPECT_EQ(t->encode_truncated("How are you?", 2).ids, (std::vector<i32>{0, 2}));
  EXPECT_EQ(test::failure_of([&] { t->encode_truncated("How", 1); }).first, ExitCode::usage);
  EXPECT_EQ(test::failure_of([&] { t->encode_pair("How", "are", 3); }).first, ExitCode::usage);
}

}  // namespace
}  // namespace redco

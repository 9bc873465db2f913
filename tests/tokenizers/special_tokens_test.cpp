// Special and added tokens come from all files of a folder, in transformers' order.
#include "tokenizers/load/special_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/tokenizers.h"

namespace redco {
namespace {

class SpecialTokens : public testing::Test {
 protected:
  // Ids: a, b, <|endoftext|>, </s>.
  SpecialTokens() {
    test::spill(folder_ / "tokenizer.json", R"({"version": "1.0", "added_tokens": [], "normalizer": null,
      "pre_tokenizer": null, "post_processor": null, "decoder": null,
      "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "<|endoftext|>": 2, "</s>": 3}, "merges": []}})");
  }
  std::unique_ptr<Tokenizer> with(const char* file, const std::string& text) {
    test::spill(folder_ / file, text);
    return load_tokenizer(folder_.path());
  }
  test::TempDir folder_;
};

TEST_F(SpecialTokens, KeysThatChangeIds) {
  const std::string right = load_tokenizer(folder_.path())->fingerprint();
  const auto left = with("tokenizer_config.json", R"({"truncation_side": "left", "made_up": 1})");
  EXPECT_EQ(left->encode_truncated("aab", 2).ids, (std::vector<i32>{0, 1}));
  EXPECT_EQ(left->encode_pair("aab", "b", 3).ids, (std::vector<i32>{0, 1, 1}));
  EXPECT_NE(left->fingerprint(), right);
  EXPECT_EQ(
      test::failure_of([&] { with("tokenizer_config.json", R"({"split_special_tokens": true})"); }).first,
      ExitCode::contents);
}

TEST_F(SpecialTokens, TheClassHasDefaults) {
  EXPECT_EQ(load_tokenizer(folder_.path())->special().eos, std::nullopt);
  // GPT-2's folders of the hub.
  EXPECT_EQ(with("config.json", R"({"model_type": "gpt2"})")->special().eos, 2);
  const auto t = with("tokenizer_config.json", R"({"tokenizer_class": "GPT2TokenizerFast"})");
  EXPECT_EQ(t->special().bos, 2);
  EXPECT_EQ(t->encode("a<|endoftext|>b"), (std::vector<i32>{0, 2, 1}));
  EXPECT_EQ(t->decode(std::vector<i32>{0, 2}, true), "a");
  // A default that the vocabulary lacks is none; null in the configuration is none.
  EXPECT_EQ(with("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer"})")->special().bos,
            std::nullopt);
  EXPECT_EQ(load_tokenizer(folder_.path())->special().eos, 3);
  EXPECT_EQ(with("tokenizer_config.json", R"({"tokenizer_class": "GPT2Tokenizer", "eos_token": null})")
                ->special()
                .eos,
            std::nullopt);
}

TEST_F(SpecialTokens, OtherFilesNameThem) {
  test::spill(folder_ / "tokenizer_config.json",
              R"({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "</s>"})");
  const auto t =
      with("special_tokens_map.json", R"({"bos_token": {"content": "<|endoftext|>"}, "eos_token": "b"})");
  EXPECT_EQ(t->special().bos, 2);
  EXPECT_EQ(t->special().eos, 3);
  test::spill(folder_ / "special_tokens_map.json", "{}");
  test::spill(folder_ / "config.json", R"({"bos_token_id": 1, "eos_token_id": 1, "pad_token_id": 77})");
  const auto ids = with("generation_config.json", R"({"bos_token_id": 2, "eos_token_id": [2, 3]})");
  EXPECT_EQ(ids->special().bos, 2);
  EXPECT_EQ(ids->special().eos, 3);
  EXPECT_EQ(ids->special().pad, std::nullopt);
}

TEST_F(SpecialTokens, NamedTokensAreAddedWithTheNextIds) {
  test::spill(folder_ / "added_tokens.json", R"({"<z>": 9, "<y>": 8})");
  const auto t = with("tokenizer_config.json", R"({"eos_token": "<end>", "additional_special_tokens": ["<t>"],
    "extra_special_tokens": {"image_token": "<i>"}})");
  const std::vector<i32> ids = t->encode("<end><t><i><y><z>a");
  EXPECT_EQ(ids, (std::vector<i32>{4, 5, 6, 7, 8, 0}));
  EXPECT_EQ(t->special().eos, 4);
  EXPECT_EQ(t->decode(ids, true), "<y> <z> a");  // without a decoder
  EXPECT_EQ(t->vocab_size(), 9);
}

}  // namespace
}  // namespace redco

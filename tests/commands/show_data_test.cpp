// Examples as the model sees them, for each kind of pipeline.
#include "commands/show_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/error_text.h"
#include "support/jobs.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using test::job_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;
using Words = std::vector<std::string>;

class ShowData : public ::testing::Test {
 protected:
  ShownData shown(const Words& more, bool evaluation = false, i64 n = 9) const {
    Words all = {"model.tokenizer=bytes", "data.max_length=16"};
    all.insert(all.end(), more.begin(), more.end());
    return show_data(job_of("", all), evaluation, "", n);
  }
  test::TempDir dir;
};

TEST_F(ShowData, TrainingPacksExamplesAndEvaluationDoesNot) {
  test::spill(dir / "a.jsonl",
              "{\"prompt\": \"ab\", \"completion\": \"c\", \"id\": \"x\"}\n"
              "{\"prompt\": \"d\", \"completion\": \"e\"}\n");
  const Words both = {"data.train=" + (dir / "a.jsonl"), "data.eval=" + (dir / "a.jsonl")};
  const ShownData packed = shown(both);
  EXPECT_EQ(packed.rows, 1);
  EXPECT_EQ(packed.examples, 2);
  ASSERT_EQ(packed.shown.size(), 1u);
  EXPECT_EQ(packed.shown[0].samples.size(), 2u);
  EXPECT_EQ(packed.row_tokens, 7);  // two end tokens
  EXPECT_NEAR(packed.padding, 1 - 7.0 / 16, 1e-12);
  const ShownData each = shown(both, true);
  EXPECT_EQ(each.rows, 2);
  EXPECT_EQ(each.shortest, 3);
  EXPECT_EQ(each.longest, 4);
  EXPECT_EQ(each.shown[0].id, "\"x\"");
  EXPECT_THAT(each.shown[0].samples[0].in_loss, ElementsAre(0, 0, 1, 1));
  EXPECT_EQ(each.padding, 1 - 7.0 / 8);  // padding up to the longest row
  EXPECT_EQ(shown(both, true, 1).shown.size(), 1u);
}

TEST_F(ShowData, PairsShowSourceAndLabels) {
  test::spill(dir / "a.jsonl", "{\"source\": \"ab\", \"target\": \"c\"}\n");
  const ShownData d =
      shown({"pipeline=seq2seq", "model.arch=bart", "model.d_model=8", "model.encoder_layers=1",
             "model.decoder_layers=1", "model.encoder_attention_heads=2", "model.decoder_attention_heads=2",
             "model.encoder_ffn_dim=8", "model.decoder_ffn_dim=8", "model.max_position_embeddings=16",
             "data.train=" + (dir / "a.jsonl")});
  ASSERT_EQ(d.shown.size(), 1u);
  const ShownRow& r = d.shown[0];
  ASSERT_GE(r.samples.size(), 2u);
  EXPECT_EQ(r.samples.front().name, "source");
  EXPECT_EQ(r.samples.front().tokens[0], "a");
  EXPECT_EQ(r.samples.back().name, "labels");
  EXPECT_EQ(r.samples.back().ids[0], 'c');
  EXPECT_EQ(r.targets, static_cast<i64>(r.samples.back().ids.size()));
  EXPECT_THAT(to_text(d, false),
              AllOf(HasSubstr("  source\n    a b\n"), HasSubstr("  labels\n    [c] [<|endoftext|>]\n")));
}

TEST_F(ShowData, LabelledExamplesShowTheirLabel) {
  test::spill(dir / "a.tsv", "text\tlabel\nx\tsour\ny\tbitter\n");
  const ShownData d =
      shown({"pipeline=classification", "model.arch=bert", "model.hidden_size=8", "model.num_hidden_layers=1",
             "model.num_attention_heads=2", "model.intermediate_size=8", "model.max_position_embeddings=16",
             "data.train=" + (dir / "a.tsv")});
  ASSERT_EQ(d.shown.size(), 2u);
  EXPECT_THAT(d.shown[0].example, HasSubstr("sour"));
  EXPECT_THAT(Json::parse(to_json(d))["shown"][1]["example"].dump(), HasSubstr("bitter"));
}

TEST_F(ShowData, ThereMustBeFilesAndATokenizer) {
  EXPECT_THAT(usage_error([&] { shown({}); }), HasSubstr("data.train is missing"));
  EXPECT_THAT(usage_error([&] { shown({"data.train=builtin:chat"}, true); }),
              HasSubstr("data.eval is missing"));
  EXPECT_THAT(usage_error([&] {
                shown({"model.tokenizer=~", "data.train=builtin:chat"});
              }),
              HasSubstr("no tokenizer"));
  EXPECT_THAT(usage_error([&] {
                shown({"pipeline=rl", "rl.env=CartPole-v1"});
              }),
              HasSubstr("makes its data while it trains"));
}

TEST(ShownData, ControlCharactersOfTokensAreEscaped) {
  ShownData d;
  d.summary = {"two tokens"};
  d.rows = 1;
  d.shown = {{.row = 0, .tokens = 3, .targets = 1}};
  d.shown[0].samples = {
      {.number = 1, .ids = {1, 2, 3}, .tokens = {"a\n\t", "b", "\x1b[2J"}, .in_loss = {0, 1, 0}}};
  EXPECT_EQ(to_text(d, false),
            "two tokens\nthe loss counts the tokens in [brackets]\n\nrow 1 of 1: 3 tokens, 1 to learn\n"
            "    a\\n\\t [b] \\x1b[2J\n");
  EXPECT_THAT(to_text(d, true), HasSubstr(" \x1b[32m[b]\x1b[0m"));
}

}  // namespace
}  // namespace redco

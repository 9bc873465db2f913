#include "pipeline/chat_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "support/error_text.h"

namespace redco {
namespace {

using namespace redco::testing;
using ::testing::HasSubstr;

const ChatTemplate& marked_chat() {
  static const ChatTemplate chat = ChatTemplate::parse(
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>{% endfor %}"
      "{% if add_generation_prompt %}<assistant>{% endif %}",
      "marked");
  return chat;
}
const Tokenizer& letters() {
  static const auto tokenizer = load_tokenizer("bytes");
  return *tokenizer;
}
std::string said(const std::vector<i32>& ids) { return letters().decode(ids, true); }
Preference preference(const std::string& json, const ChatTemplate* chat = &marked_chat()) {
  return preference_of_record(letters(), chat, Record(json, "a.jsonl:1"));
}

// TRL's implicit prompt: the space before the answers belongs to them, and no character is cut.
TEST(ChatRecords, TheCommonBeginningOfTextsIsThePrompt) {
  const Preference p =
      preference(R"({"chosen": "Name a colour: Blue.", "rejected": "Name a colour: Black."})");
  EXPECT_EQ(said(p.prompt), "Name a colour: Bl");
  EXPECT_EQ(said(p.answers[0]), "ue.");
  EXPECT_EQ(said(p.answers[1]), "ack.");
  EXPECT_EQ(p.answers[0].back(), 256);
  EXPECT_EQ(said(preference(R"({"chosen": "Say: yes", "rejected": "Say: no"})").answers[1]), " no");
  EXPECT_EQ(said(preference(R"({"chosen": "a\u00e9", "rejected": "a\u00e8"})").prompt), "a");
  EXPECT_THAT(
      error_text<ContentsError>([] { preference(R"({"chosen": "yes", "rejected": "no"})"); }),
      HasSubstr("a.jsonl:1: no \"prompt\", and \"chosen\" and \"rejected\" have no common beginning"));
  EXPECT_THAT(error_text<ContentsError>([] { preference(R"({"chosen": "yes", "rejected": "yes no"})"); }),
              HasSubstr("the answer \"chosen\" is empty"));
}

// As in ultrafeedback_binarized: "prompt" is a text, and both lists begin with it.
TEST(ChatRecords, AnswersMayRepeatThePrompt) {
  for (const std::string prompt : {R"("Hi")", R"([{"role": "user", "content": "Hi"}])"}) {
    const Preference p = preference(
        R"({"prompt": )" + prompt +
        R"(, "chosen": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "yes"}],
            "rejected": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "no"}]})");
    EXPECT_EQ(said(p.prompt), "<user>Hi<end><assistant>");
    EXPECT_EQ(said(p.answers[0]), "yes<end>");
    EXPECT_EQ(said(p.answers[1]), "no<end>");
    // as Parquet has it: {content, role}, and null for missing members
    const Preference q = preference(
        R"({"prompt": )" + prompt +
        R"(, "chosen": [{"content": "Hi", "role": "user", "tool_calls": null}, {"content": "yes", "role": "assistant"}],
            "rejected": [{"content": "Hi", "role": "user", "tool_calls": null}, {"content": "no", "role": "assistant"}]})");
    EXPECT_EQ(said(q.prompt), "<user>Hi<end><assistant>");
    EXPECT_EQ(said(q.answers[0]), "yes<end>");
  }
}

// A template that ends turns with a line break, as ChatML.
TEST(ChatRecords, RewardModelsReadWholeConversations) {
  const ChatTemplate chat = ChatTemplate::parse(
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}<|endoftext|>\n{% endfor %}"
      "{% if add_generation_prompt %}<assistant>{% endif %}",
      "lines");
  const auto text = [](const std::vector<i32>& ids) { return letters().decode(ids, false); };
  const std::string prompt = R"({"prompt": [{"role": "user", "content": "Hi"}])";
  const Preference p = preference(prompt + R"(, "chosen": [{"role": "assistant", "content": "yes"}],
                                              "rejected": [{"role": "assistant", "content": "no"}]})",
                                  &chat);
  EXPECT_EQ(text(p.answers[0]) + "|" + text(p.tail), "yes<|endoftext|>|\n");
  const std::string whole = "<user>Hi<|endoftext|>\n<assistant>yes<|endoftext|>\n";
  const Record one(prompt + R"(, "completion": [{"role": "assistant", "content": "yes"}]})", "a:1");
  EXPECT_EQ(text(scored_ids_of_record(letters(), &chat, one)), whole);
  EXPECT_EQ(text(scored_ids_of_record(letters(), &chat,
                                      Record(R"({"messages": [{"role": "user", "content": "Hi"},
                 {"role": "assistant", "content": "yes"}]})",
                                             "a:1"))),
            whole);
  // An answer of a model, with and without its end token
  const std::vector<i32> closing = closing_of_record(letters(), &chat, one);
  EXPECT_EQ(text(closing), "<|endoftext|>\n");
  for (const bool ended : {false, true}) {
    std::vector<i32> ids = letters().encode("yes", false);
    if (ended) ids.push_back(*letters().special().eos);
    close_answer(ids, closing);
    EXPECT_EQ(text(ids), "yes<|endoftext|>\n");
  }
  EXPECT_TRUE(closing_of_record(letters(), &chat, Record(R"({"prompt": "Hi"})", "a:1")).empty());
}

// LLaMA-Factory's form.
TEST(ChatRecords, TurnsOfShareGptMayHaveTwoAnswers) {
  const Preference p = preference(
      R"({"conversations": [{"from": "human", "value": "Hi"}], "chosen": {"from": "gpt", "value": "yes"},
          "rejected": {"from": "gpt", "value": "no"}})");
  EXPECT_EQ(said(p.prompt) + "|" + said(p.answers[0]) + "|" + said(p.answers[1]),
            "<user>Hi<end><assistant>|yes<end>|no<end>");
}

TEST(ChatRecords, JudgedAnswersAreTextsOrMessages) {
  const auto judged = [](const std::string& json) {
    return judged_answer_of_record(letters(), &marked_chat(), Record(json, "k.jsonl:2"));
  };
  const JudgedAnswer text = judged(R"({"prompt": "1+1=", "completion": "2", "label": true})");
  EXPECT_EQ(said(text.prompt) + "|" + said(text.answer), "1+1=|2");
  EXPECT_EQ(text.answer.back(), 256);
  EXPECT_TRUE(text.good);
  const JudgedAnswer chat = judged(
      R"({"prompt": [{"role": "user", "content": "Hi"}], "completion": [{"role": "assistant", "content": "no"}],
          "label": 0})");
  EXPECT_EQ(said(chat.prompt) + "|" + said(chat.answer), "<user>Hi<end><assistant>|no<end>");
  EXPECT_FALSE(chat.good);
  EXPECT_THAT(
      error_text<ContentsError>([&] { judged(R"({"prompt": "a", "completion": "b", "label": "good"})"); }),
      HasSubstr("k.jsonl:2: \"label\" is \"good\"; expected true (a good answer) or false"));
  EXPECT_THAT(
      error_text<ContentsError>([&] { judged(R"({"prompt": "a", "chosen": "b", "rejected": "c"})"); }),
      HasSubstr("a pair of answers; dpo.loss_type=kto reads one answer per record"));
}

TEST(ChatRecords, ScoredTextsAreChatsAnswersOrTexts) {
  const auto scored = [](const std::string& json) {
    return said(scored_ids_of_record(letters(), &marked_chat(), Record(json, "s.jsonl:1")));
  };
  EXPECT_EQ(scored(R"({"prompt": "a", "completion": "b"})"), "ab");
  EXPECT_EQ(scored(R"({"prompt": "a"})"), "a");
  EXPECT_EQ(scored(R"({"messages": [{"role": "user", "content": "Hi"}]})"), "<user>Hi<end>");
}

TEST(ChatRecords, LongAnswersLoseThePromptsBeginningFirst) {
  std::vector<i32> prompt = {1, 2, 3, 4}, answer = {5, 6, 7};
  fit_answer(prompt, answer, 5);
  EXPECT_EQ(prompt, (std::vector<i32>{3, 4}));
  EXPECT_EQ(answer, (std::vector<i32>{5, 6, 7}));
  fit_answer(prompt, answer, 3);
  EXPECT_EQ(prompt, (std::vector<i32>{4}));
  EXPECT_EQ(answer, (std::vector<i32>{5, 6}));
}

}  // namespace
}  // namespace redco

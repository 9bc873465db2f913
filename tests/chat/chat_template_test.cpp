// Chat templates: text and ids equal those of transformers' apply_chat_template; folders with templates; the
// turns that the training loss counts.
#include "chat/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "support/error_text.h"
#include "support/tokenizers.h"

namespace redco {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kFolder = std::string(REDCO_FIXTURES) + "/chat_templates/";

// The special tokens of a fixture tokenizer's config.
std::vector<std::pair<std::string, std::string>> special_of(const std::string& tokenizer) {
  const json config = json::parse(test::slurp(test::tokenizer_fixture(tokenizer) + "/tokenizer_config.json"));
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [key, value] : config.items())
    if (key.ends_with("_token") && value.is_string()) out.emplace_back(key, value);
  return out;
}

ChatTemplate named(const std::string& name, const std::string& tokenizer) {
  return ChatTemplate::parse(test::slurp(kFolder + name + ".jinja"), name, special_of(tokenizer));
}

// The texts of the spans that the loss counts.
std::vector<std::string> turns(const TrainingText& t) {
  std::vector<std::string> out;
  for (const TextSpan& s : t.spans) out.push_back(t.text.substr(s.begin, s.end - s.begin));
  return out;
}

const std::vector<ChatMessage> kTurns = {
    {"user", "1 + 1?"}, {"assistant", "2"}, {"user", "And ß?"}, {"assistant", " ja \n"}};

TEST(ChatTemplate, EqualsTransformers) {
  const ordered_json all = ordered_json::parse(test::slurp(kFolder + "conversations.json"));
  std::map<std::string, std::unique_ptr<Tokenizer>> tokenizers;
  std::istringstream lines(test::slurp(kFolder + "chats.jsonl"));
  int cases = 0;
  for (std::string line; std::getline(lines, line); ++cases) {
    const ordered_json c = ordered_json::parse(line);
    const std::string name = c["template"], kind = c["tokenizer"], conversation = c["messages"];
    SCOPED_TRACE(name + " " + conversation + (c["tools"] ? " with tools" : ""));
    const ChatTemplate t = named(name, kind);
    const auto messages = parse_messages(all["conversations"][conversation].dump(), conversation);
    ChatVariables v;
    v.add_generation_prompt = c["add_generation_prompt"];
    if (c["tools"]) v.tools = all["tools"].dump();
    v.more = c["variables"].dump();
    if (c["text"].is_null()) {
      const auto [code, message] = test::failure_of([&] { t.render(messages, v); });
      EXPECT_EQ(code, ExitCode::contents);
      const std::string error = c["error"];  // "TemplateError: the template's message"
      EXPECT_THAT(message, HasSubstr(error.substr(error.find(": ") + 2)));
      continue;
    }
    const std::string text = t.render(messages, v);
    EXPECT_EQ(text, c["text"].get<std::string>());
    auto& tokenizer = tokenizers[kind];
    if (!tokenizer) tokenizer = load_tokenizer(test::tokenizer_fixture(kind));
    EXPECT_EQ(tokenizer->encode(text, false), c["ids"].get<std::vector<i32>>());
    if (c.contains("mask")) {
      const ChatTokens tokens = tokenize_chat(*tokenizer, t.render_training(messages, v));
      if (!v.add_generation_prompt) EXPECT_EQ(tokens.in_loss, c["mask"].get<std::vector<std::uint8_t>>());
    }
  }
  EXPECT_GT(cases, 120);
}

// --- Training ---

TEST(ChatTemplate, TurnsWithTheirEndTokens) {
  EXPECT_THAT(turns(named("chatml", "qwen").render_training(kTurns)),
              ElementsAre("2<|im_end|>", " ja \n<|im_end|>"));
  EXPECT_THAT(turns(named("chatml-generation", "qwen").render_training(kTurns)),
              ElementsAre("2<|im_end|>", " ja \n<|im_end|>"));
  EXPECT_THAT(turns(named("llama3", "llama3").render_training(kTurns)),
              ElementsAre("2<|eot_id|>", "ja<|eot_id|>"));
  EXPECT_THAT(turns(named("gemma", "llama2").render_training(kTurns)),
              ElementsAre("2<end_of_turn>", "ja<end_of_turn>"));
  EXPECT_THAT(turns(named("mistral-v1", "llama2").render_training(kTurns)),
              ElementsAre("2</s>", " ja \n</s>"));
  EXPECT_THAT(turns(named("llama2", "llama2").render_training(kTurns)), ElementsAre(" 2 </s>", " ja </s>"));
  EXPECT_THAT(turns(named("zephyr", "llama2").render_training(kTurns)), ElementsAre("2</s>", " ja \n</s>"));
}

// These templates rewrite earlier turns: the text of a conversation's prefix is not a prefix of the text.
TEST(ChatTemplate, TurnsOfTemplatesThatRewriteEarlierTurns) {
  // </s> only at the end of the text.
  EXPECT_THAT(turns(named("phi3", "llama2").render_training(kTurns)),
              ElementsAre("2<|end|>", " ja \n<|end|>\n</s>"));
  // Reasoning is omitted except after the last question.
  const std::vector<ChatMessage> thoughts = {{"user", "q"},
                                             {"assistant", "<think>\nwhy\n</think>\n\nso"},
                                             {"user", "q2"},
                                             {"assistant", "<think>\nhm\n</think>\n\nthus"}};
  const ChatTemplate qwen3 = named("qwen3", "qwen");
  EXPECT_THAT(turns(qwen3.render_training(thoughts)), ElementsAre("<think>\nhm\n</think>\n\nthus<|im_end|>"));
  EXPECT_THAT(turns(qwen3.render_training(std::span(thoughts).first(2))),
              ElementsAre("<think>\nwhy\n</think>\n\nso<|im_end|>"));
  auto fields = parse_messages(
      R"([{"role": "user", "content": "q"}, {"role": "assistant", "content": "so", "reasoning_content": "so"},
          {"role": "user", "content": "q"}, {"role": "assistant", "content": "no", "reasoning_content": ""},
          {"role": "user", "content": "q"}, {"role": "assistant", "content": "ok", "reasoning_content": "hm"}])",
      "fields");
  EXPECT_THAT(turns(qwen3.render_training(fields)),
              ElementsAre("no<|im_end|>", "<think>\nhm\n</think>\n\nok<|im_end|>"));
  // This template omits the reasoning of each turn.
  const ChatTemplate deepseek = named("deepseek", "llama3");
  EXPECT_THAT(error_text<ContentsError>([&] { deepseek.render_training(thoughts); }),
              HasSubstr("the template omits the reasoning of message 2, so the model would learn to answer"));
  std::vector<ChatMessage> plain = thoughts;
  plain[1].content = "so", plain[3].content = "thus";
  EXPECT_THAT(turns(deepseek.render_training(plain)),
              ElementsAre("so<｜end▁of▁sentence｜>", "thus<｜end▁of▁sentence｜>"));
  // The system message is part of the last question.
  std::vector<ChatMessage> system = kTurns;
  system.insert(system.begin(), {"system", "S"});
  system.push_back({"user", "last"});
  EXPECT_THAT(turns(named("mistral-v3", "llama2").render_training(system)), ElementsAre("2</s>", "ja</s>"));
}

TEST(ChatTemplate, TurnsWithTools) {
  const ordered_json all = ordered_json::parse(test::slurp(kFolder + "conversations.json"));
  const auto called = parse_messages(all["conversations"]["called"].dump(), "called");
  const std::string call =
      "\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Köln\", \"days\": 2, \"tags\": "
      "[1.5, -2]}}\n"
      "</tool_call><|im_end|>";
  const auto qwen = turns(named("qwen2.5", "qwen").render_training(called, {.tools = all["tools"].dump()}));
  EXPECT_THAT(qwen, ElementsAre(call.substr(1), "12.5 degrees<|im_end|>"));
  const auto qwen3 = turns(named("qwen3", "qwen").render_training(called));
  EXPECT_THAT(qwen3, ElementsAre(call.substr(1), "<think>\n\n</think>\n\n12.5 degrees<|im_end|>"));
}

// A turn of nothing but tool calls would be an empty answer.
TEST(ChatTemplate, TemplatesWithoutToolCalls) {
  const ordered_json all = ordered_json::parse(test::slurp(kFolder + "conversations.json"));
  auto called = parse_messages(all["conversations"]["called"].dump(), "called");
  const ChatTemplate plain = named("chatml", "qwen");
  for (ChatMessage& m : called)
    if (m.json.find("tool_calls") != std::string::npos) {
      ordered_json j = ordered_json::parse(m.json);
      j["content"] = m.content = "";
      m.json = j.dump();
    }
  EXPECT_THAT(error_text<ContentsError>([&] { plain.render_training(called); }),
              HasSubstr("the template has no place for tool calls, so message "));
  for (ChatMessage& m : called) m.train = m.train && m.json.find("tool_calls") == std::string::npos;
  EXPECT_FALSE(plain.render_training(called).spans.empty());
}

TEST(ChatTemplate, TurnsOfWeightZero) {
  const auto messages = parse_messages(
      R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "weight": 0},
          {"role": "user", "content": "c"}, {"role": "assistant", "content": "d", "weight": 1}])",
      "m");
  EXPECT_THAT(turns(named("chatml", "qwen").render_training(messages)), ElementsAre("d<|im_end|>"));
  EXPECT_THAT(turns(named("chatml-generation", "qwen").render_training(messages)),
              ElementsAre("d<|im_end|>"));
}

TEST(ChatTemplate, TurnsThatCantBeFound) {
  const ChatTemplate t =
      ChatTemplate::parse("{% for m in messages | reverse %}{{ m.content | upper }}{% endfor %}", "odd");
  const auto [code, message] = test::failure_of([&] { t.render_training(kTurns); });
  EXPECT_EQ(code, ExitCode::contents);
  EXPECT_THAT(message, HasSubstr("odd: can't find the assistant's message 2 in the text: "));
  EXPECT_THAT(message, HasSubstr("{% generation %}"));
}

TEST(ChatTemplate, NoEndToken) {
  const ChatTemplate t = ChatTemplate::parse(
      "{% for m in messages %}{{ m.role }}: {{ m.content }}\n\n{% endfor %}"
      "{% if add_generation_prompt %}assistant: {% endif %}",
      "plain");
  const std::vector<ChatMessage> two = {{"user", "a"}, {"assistant", "b"}};
  // Only line breaks after the content end a turn.
  EXPECT_THAT(turns(t.render_training(two)), ElementsAre("b\n\n"));
}

// A token that crosses the edge of a span counts, as in transformers' masks.
TEST(ChatTemplate, TokensAcrossSpanEdges) {
  const auto tokenizer = load_tokenizer(test::tokenizer_fixture("gpt2"));
  const std::string text = "the weather, and the other thing together";
  const auto [ids, tokens] = tokenizer->tokenize(text, false);
  ASSERT_LT(tokens.size(), text.size() - 5);  // some tokens are long
  for (std::size_t begin = 0; begin <= text.size(); ++begin)
    for (std::size_t end = begin + 1; end <= text.size(); end += 3) {
      const ChatTokens got = tokenize_chat(*tokenizer, {text, {{begin, end}}});
      ASSERT_EQ(got.ids, ids);
      std::size_t at = 0;
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        std::size_t size = tokens[i].size();
        if (tokens[i].starts_with("Ġ")) size -= 1;  // two bytes for a space
        EXPECT_EQ(got.in_loss[i], at < end && begin < at + size) << begin << " " << end << " token " << i;
        at += size;
      }
      ASSERT_EQ(at, text.size());
    }
}

// --- Messages ---

TEST(ChatMessages, ParsedFromJson) {
  const auto m = parse_messages(
      R"([{"role": "user", "content": "a"}, {"content": [{"type": "text", "text": "x"}], "role": "assistant"},
          {"role": "tool", "content": "b", "name": "f"}, {"role": "assistant", "content": null}])",
      "m");
  ASSERT_EQ(m.size(), 4u);
  EXPECT_EQ(m[0].content, "a");
  EXPECT_EQ(m[0].json, "");
  EXPECT_EQ(m[1].content, "x");  // parts that are texts are joined
  EXPECT_EQ(m[1].json, "");
  EXPECT_EQ(m[2].content, "b");
  EXPECT_EQ(m[2].json, R"({"role": "tool", "content": "b", "name": "f"})");
  // A null content is missing, as in transformers.
  const ChatTemplate t =
      ChatTemplate::parse("{% for m in messages %}{{ m.content is defined }}{% endfor %}", "t");
  EXPECT_EQ(t.render(m), "TrueTrueTrueFalse");
}

TEST(ChatMessages, Invalid) {
  for (const char* text :
       {"", "{}", "[]", "[1]", "[{}]", "[{\"role\": 1}]", "[{\"content\": \"x\"}]", "[{\"role\": \"user\"",
        "[{\"role\": \"user\", \"weight\": \"x\"}]", "[{\"role\": \"\xFF\"}]"}) {
    const auto [code, message] = test::failure_of([&] { parse_messages(text, "train.jsonl:7"); });
    EXPECT_EQ(code, ExitCode::contents) << text;
    EXPECT_THAT(message, HasSubstr("train.jsonl:7: ")) << text;
  }
  const ChatTemplate t = ChatTemplate::parse("x", "t");
  const std::vector<ChatMessage> bad = {{"user", "\xFF"}};
  EXPECT_EQ(test::failure_of([&] { t.render(bad); }).first, ExitCode::contents);
  EXPECT_EQ(test::failure_of([&] { t.render(kTurns, {.tools = "{}"}); }).first, ExitCode::contents);
  EXPECT_EQ(test::failure_of([&] { t.render(kTurns, {.more = "[]"}); }).first, ExitCode::contents);
}

// --- Folders ---

class ChatFolder : public testing::Test {
 protected:
  test::TempDir folder_;
  std::string rendered(const ChatVariables& v = {}) {
    return ChatTemplate::load(folder_.path())->render(kTurns, v);
  }
  void config(const json& j) { test::spill(folder_ / "tokenizer_config.json", j.dump()); }
};

TEST_F(ChatFolder, WithoutTemplate) {
  EXPECT_FALSE(ChatTemplate::load(folder_.path()));
  config({{"bos_token", "<s>"}, {"chat_template", nullptr}});
  EXPECT_FALSE(ChatTemplate::load(folder_.path()));
}

TEST_F(ChatFolder, OneInTheConfig) {
  config({{"chat_template", "{{ bos_token }}{{ eos_token }}{{ pad_token }}!"},
          {"bos_token", {{"content", "<b>"}}},
          {"eos_token", "</b>"},
          {"pad_token", nullptr}});
  EXPECT_EQ(rendered(), "<b></b>!");
  test::spill(folder_ / "special_tokens_map.json", R"({"bos_token": "<other>", "pad_token": "<p>"})");
  EXPECT_EQ(rendered(), "<b></b><p>!");  // tokens of the config have precedence
}

TEST_F(ChatFolder, SeveralInTheConfig) {
  config({{"chat_template",
           {{{"name", "default"}, {"template", "d"}}, {{"name", "tool_use"}, {"template", "t"}}}}});
  EXPECT_EQ(rendered(), "d");
  EXPECT_EQ(rendered({.tools = "[{}]"}), "t");
  config({{"chat_template", {{{"name", "rag"}, {"template", "d"}}}}});
  EXPECT_THAT(test::failure_of([&] { rendered(); }).second, HasSubstr("no template is named default"));
  config({{"chat_template", 3}});
  EXPECT_EQ(test::failure_of([&] { rendered(); }).first, ExitCode::contents);
  config({{"chat_template", {1}}});
  EXPECT_EQ(test::failure_of([&] { rendered(); }).first, ExitCode::contents);
}

TEST_F(ChatFolder, TheFileHasPrecedence) {
  config({{"chat_template", "config"}, {"bos_token", "<s>"}});
  test::spill(folder_ / "chat_template.jinja", "{{ bos_token }} file\n");
  EXPECT_EQ(rendered(), "<s> file");
  EXPECT_EQ(ChatTemplate::load(folder_.path())->source(), "{{ bos_token }} file\n");
  test::spill(folder_ / "chat_template.jinja", "\n{{ 1 +");
  EXPECT_THAT(test::failure_of([&] { rendered(); }).second, HasSubstr("chat_template.jinja:2:"));
}

}  // namespace
}  // namespace redco

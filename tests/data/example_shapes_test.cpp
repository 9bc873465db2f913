// Lines in the formats of Alpaca and ShareGPT.
#include "data/text/example_shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "data/examples_testing.h"

namespace redco {
namespace {

using ::testing::HasSubstr;

const std::string kTemplates = std::string(REDCO_FIXTURES) + "/chat_templates/";

// The tokens and the loss mask of two lines are equal.
void expect_same(const ExampleLines& lines, const std::string& line, const std::string& other) {
  const TokenizedExample a = lines.read(line), b = lines.read(other);
  EXPECT_EQ(a.kind, b.kind) << line;
  EXPECT_EQ(a.ids, b.ids) << line;
  EXPECT_EQ(a.in_loss, b.in_loss) << line;
  EXPECT_EQ(a.prompt_tokens, b.prompt_tokens) << line;
  EXPECT_EQ(a.reference, b.reference) << line;
}

TEST_F(Examples, AlpacaIsAChatIfThereIsATemplate) {
  const ChatTemplate chat = ChatTemplate::parse(test::slurp(kTemplates + "chatml.jinja"), "chatml");
  const ExampleLines lines(*bytes_, &chat, {});
  const std::string answer = R"({"role": "assistant", "content": "Hallo"}]})";
  const std::string plain = R"({"messages": [{"role": "user", "content": "Translate."}, )" + answer;
  expect_same(lines, R"({"instruction": "Translate.", "input": "", "output": "Hallo"})", plain);
  expect_same(lines, R"({"instruction": "Translate.", "output": "Hallo", "history": []})", plain);
  expect_same(lines, R"({"instruction": "Translate.", "input": null, "output": "Hallo"})", plain);
  expect_same(lines, R"({"instruction": "Translate.", "input": "hello", "output": "Hallo"})",
              R"({"messages": [{"role": "user", "content": "Translate.\n\nhello"}, )" + answer);
  expect_same(
      lines, R"({"instruction": "Translate.", "output": "Hallo", "system": "Be brief."})",
      R"({"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Translate."}, )" +
          answer);
}

TEST_F(Examples, AlpacasHistoryIsTheEarlierTurns) {
  const ChatTemplate chat = ChatTemplate::parse(test::slurp(kTemplates + "chatml.jinja"), "chatml");
  const ExampleLines lines(*bytes_, &chat, {});
  const std::string messages =
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, )"
      R"({"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}]})";
  expect_same(lines, R"({"instruction": "c", "output": "d", "history": [["a", "b"]]})", messages);
  expect_same(lines, R"({"instruction": "c", "output": "d", "history": "[[\"a\", \"b\"]]"})", messages);
  expect_same(lines, R"({"instruction": "c", "output": "d", "history": null})",
              R"({"instruction": "c", "output": "d"})");
  EXPECT_THAT(refused(R"({"instruction": "a", "output": "b", "history": [["c", "d"]]})"),
              HasSubstr("\"history\" needs a chat template, and the model has none. Set data.chat_template"));
}

TEST_F(Examples, AlpacaWithoutATemplateIsStanfordsPrompt) {
  const ExampleLines lines(*bytes_, nullptr, {});
  expect_same(
      lines, R"({"instruction": "Add.", "input": "", "output": " 4"})",
      R"({"prompt": "Below is an instruction that describes a task. Write a response that appropriately )"
      R"(completes the request.\n\n### Instruction:\nAdd.\n\n### Response:", "completion": " 4"})");
  expect_same(
      lines, R"({"instruction": "Add.", "input": "2 2", "output": " 4"})",
      R"({"prompt": "Below is an instruction that describes a task, paired with an input that provides )"
      R"(further context. Write a response that appropriately completes the request.\n\n)"
      R"(### Instruction:\nAdd.\n\n### Input:\n2 2\n\n### Response:", "completion": " 4"})");
  EXPECT_THAT(refused(R"({"instruction": "a", "output": "b", "system": "c"})"),
              HasSubstr("\"system\" needs a chat template, and the model has none. Set data.chat_template"));
}

TEST_F(Examples, ShareGptIsMessages) {
  const ChatTemplate chat = ChatTemplate::parse(test::slurp(kTemplates + "chatml.jinja"), "chatml");
  const ExampleLines lines(*bytes_, &chat, {});
  const std::string messages =
      R"({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "a"}, )"
      R"({"role": "assistant", "content": "b", "weight": 0}, {"role": "user", "content": "c"}, )"
      R"({"role": "assistant", "content": "d"}]})";
  expect_same(lines,
              R"({"conversations": [{"from": "system", "value": "s"}, {"from": "human", "value": "a"}, )"
              R"({"from": "gpt", "value": "b", "weight": 0}, {"from": "user", "value": "c"}, )"
              R"({"from": "assistant", "value": "d"}], "id": 1})",
              messages);
  expect_same(lines,
              R"({"system": "s", "conversations": [{"from": "human", "value": "a"}, )"
              R"({"from": "gpt", "value": "b", "weight": 0}, {"from": "human", "value": "c"}, )"
              R"({"from": "gpt", "value": "d"}]})",
              messages);
  EXPECT_THROW(
      ExampleLines(*bytes_, nullptr, {})
          .read(R"({"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]})"),
      UsageError);
}

// LLaMA-Factory's form of tool calls, with arguments as an object or a text.
TEST_F(Examples, ShareGptsFunctionCallsAreToolCalls) {
  const ChatTemplate chat = ChatTemplate::parse(test::slurp(kTemplates + "qwen2.5.jinja"), "qwen");
  const ExampleLines lines(*bytes_, &chat, {});
  for (const std::string arguments : {R"({"city": "Bonn"})", R"("{\"city\": \"Bonn\"}")"}) {
    const nlohmann::json call = nlohmann::json::parse(R"({"name": "rain", "arguments": )" + arguments + "}");
    const nlohmann::json tools = nlohmann::json::parse(R"([{"name": "rain", "parameters": {}}])");
    const nlohmann::json messages = {{{"role", "user"}, {"content", "a"}},
                                     {{"role", "assistant"},
                                      {"content", ""},
                                      {"tool_calls", {{{"type", "function"}, {"function", call}}}}},
                                     {{"role", "tool"}, {"content", "no"}},
                                     {{"role", "assistant"}, {"content", "b"}}};
    const nlohmann::json turns = {{{"from", "human"}, {"value", "a"}},
                                  {{"from", "function_call"}, {"value", call.dump()}},
                                  {{"from", "observation"}, {"value", "no"}},
                                  {{"from", "gpt"}, {"value", "b"}}};
    expect_same(lines, nlohmann::json{{"conversations", turns}, {"tools", tools.dump()}}.dump(),
                nlohmann::json{{"messages", messages}, {"tools", tools}}.dump());
  }
}

TEST_F(Examples, KeysOfAlpacaAndShareGpt) {
  ExampleFields fields;
  fields.instruction = "q", fields.input = "context", fields.output = "a";
  const ExampleLines renamed(*bytes_, nullptr, fields);
  expect_same(renamed, R"({"q": "x", "context": "y", "a": "z", "instruction": 1, "output": 2})",
              R"({"q": "x", "context": "y", "a": "z"})");
  fields.instruction = fields.output = std::nullopt;
  EXPECT_EQ(ExampleLines(*bytes_, nullptr, fields).read(R"({"text": "t", "q": "x", "a": "z"})").kind,
            ExampleKind::text);
  // Jobs that map these formats by hand keep their meaning.
  ExampleFields by_hand;
  by_hand.prompt = "instruction", by_hand.completion = "output";
  EXPECT_EQ(ExampleLines(*bytes_, nullptr, by_hand).read(R"({"instruction": "ab", "output": "c"})").ids,
            (std::vector<i32>{'a', 'b', 'c', 256}));
  const ChatTemplate chat = ChatTemplate::parse(test::slurp(kTemplates + "chatml.jinja"), "chatml");
  ExampleFields roles;
  roles.messages = "conversations";
  EXPECT_EQ(
      ExampleLines(*bytes_, &chat, roles)
          .read(
              R"({"conversations": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})")
          .reference,
      "b");
}

}  // namespace
}  // namespace redco

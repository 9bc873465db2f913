#include "data/text/example_shapes.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/words.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

// The text under a fixed key; "" if the line has none.
std::string optional_text(const Json& line, const char* key) {
  const auto it = line.find(key);
  return it == line.end() || it->is_null() ? "" : as_text(*it, key);
}

Json message(const std::string& role, const std::string& content) {
  return {{"role", role}, {"content", content}};
}

Json with_system(const Json& line) {
  Json messages = Json::array();
  if (const std::string system = optional_text(line, "system"); !system.empty())
    messages.push_back(message("system", system));
  return messages;
}

std::string role_of(const std::string& from) {
  if (from == "human" || from == "user") return "user";
  if (from == "gpt" || from == "assistant" || from == "model") return "assistant";
  if (from == "tool" || from == "observation") return "tool";
  return from == "system" ? from : "";
}

}  // namespace

const std::string& as_text(const Json& value, const std::string& key) {
  if (!value.is_string()) throw ContentsError("\"{}\" is not a text but {}", key, value.type_name());
  return value.get_ref<const std::string&>();
}

Json sharegpt_messages(const Json& line, const Json& turns, const std::string& key) {
  if (!turns.is_array()) throw ContentsError("\"{}\" is not a list but {}", key, turns.type_name());
  Json messages = with_system(line);
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const Json& turn = turns[i];
    const std::string at = fmt::format("{}[{}]", key, i);
    if (!turn.is_object()) throw ContentsError("\"{}\" is not an object but {}", at, turn.type_name());
    for (const char* part : {"from", "value"})
      if (!turn.contains(part))
        throw ContentsError(
            "\"{}\" has no \"{}\"; {}", at, part,
            turn.contains("role")
                ? fmt::format("for turns with \"role\" and \"content\" set data.fields.messages={}", key)
                : "expected turns with \"from\" and \"value\"");
    const std::string& from = as_text(turn["from"], at + ".from");
    const std::string role = role_of(from);
    if (role.empty())
      throw ContentsError(
          "\"{}\" has the role {}, expected human, gpt, user, assistant, model, tool or system. Use \"messages\" for "
          "other roles",
          at, from.empty() ? "\"\"" : excerpt(from));
    Json m = message(role, as_text(turn["value"], at + ".value"));
    if (const auto weight = turn.find("weight"); weight != turn.end()) m["weight"] = *weight;
    messages.push_back(std::move(m));
  }
  return messages;
}

Json alpaca_messages(const Json& line, const AlpacaLine& x) {
  Json messages = with_system(line);
  messages.push_back(message("user", x.input.empty() ? x.instruction : x.instruction + "\n\n" + x.input));
  messages.push_back(message("assistant", x.output));
  return messages;
}

std::string alpaca_prompt(const Json& line, const AlpacaLine& x) {
  if (!optional_text(line, "system").empty())
    throw ContentsError(
        "\"system\" needs a chat template, and the model has none. Set data.chat_template to a Jinja file or "
        "to builtin:chat");
  if (x.input.empty())
    return "Below is an instruction that describes a task. Write a response that appropriately completes the "
           "request.\n\n### Instruction:\n" +
           x.instruction + "\n\n### Response:";
  return "Below is an instruction that describes a task, paired with an input that provides further context. "
         "Write a response that appropriately completes the request.\n\n### Instruction:\n" +
         x.instruction + "\n\n### Input:\n" + x.input + "\n\n### Response:";
}

}  // namespace redco

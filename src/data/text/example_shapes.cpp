#include "data/text/example_shapes.h"

#include <algorithm>
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

std::string system_of(const Json& line) {
  const std::string system = optional_text(line, "system");
  return system.empty() ? optional_text(line, "system_prompt") : system;
}

Json with_system(const Json& line) {
  Json messages = Json::array();
  if (const std::string system = system_of(line); !system.empty())
    messages.push_back(message("system", system));
  return messages;
}

std::string role_of(const std::string& from) {
  if (from == "human" || from == "user") return "user";
  if (from == "function_call" || from == "gpt" || from == "assistant" || from == "model") return "assistant";
  if (from == "tool" || from == "observation") return "tool";
  return from == "system" ? from : "";
}

// The calls of a turn function_call, which holds {"name", "arguments"} or a list of them as a text of JSON,
// in OpenAI's form.
Json tool_calls_of(const std::string& text, const std::string& at) {
  Json calls = Json::parse(text, nullptr, false);
  if (calls.is_object()) calls = Json::array({calls});
  Json out = Json::array();
  for (const Json& call : calls.is_array() ? calls : Json::array()) {
    if (!call.is_object() || !call.contains("name") || !call["name"].is_string() ||
        !call.contains("arguments")) {
      out.clear();
      break;
    }
    out.push_back(
        {{"type", "function"}, {"function", {{"name", call["name"]}, {"arguments", call["arguments"]}}}});
  }
  if (out.empty())
    throw ContentsError(
        "\"{}\" is a function_call but holds {}, expected JSON: {{\"name\": \"...\", \"arguments\": {{...}}}}, "
        "or a list of such objects",
        at, text.empty() ? "\"\"" : excerpt(text));
  return out;
}

}  // namespace

const std::string& as_text(const Json& value, const std::string& key) {
  if (value.is_array() && !value.empty() && value[0].is_string())
    throw ContentsError(
        "\"{0}\" is a list of texts; expected a text. The path {0}.0 in data.fields reads the first one",
        key);
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
          "\"{}\" has the role {}, expected human, gpt, user, assistant, model, function_call, tool, observation or "
          "system. Use \"messages\" for other roles",
          at, from.empty() ? "\"\"" : excerpt(from));
    const std::string& value = as_text(turn["value"], at + ".value");
    const bool calls = from == "function_call";
    Json m = message(role, calls ? "" : value);
    if (calls) m["tool_calls"] = tool_calls_of(value, at);
    if (const auto weight = turn.find("weight"); weight != turn.end()) m["weight"] = *weight;
    messages.push_back(std::move(m));
  }
  return messages;
}

Json alpaca_messages(const Json& line, const AlpacaLine& x) {
  Json messages = with_system(line);
  for (const auto& [question, answer] : x.history) {
    messages.push_back(message("user", question));
    messages.push_back(message("assistant", answer));
  }
  messages.push_back(message("user", x.input.empty() ? x.instruction : x.instruction + "\n\n" + x.input));
  messages.push_back(message("assistant", x.output));
  return messages;
}

std::vector<std::pair<std::string, std::string>> alpaca_history(const Json& line) {
  std::vector<std::pair<std::string, std::string>> out;
  const auto it = line.find("history");
  if (it == line.end() || it->is_null() || *it == "") return out;
  // A table holds the list as a text of JSON.
  const Json turns = it->is_string() ? Json::parse(it->get_ref<const std::string&>(), nullptr, false) : *it;
  const auto is_text = [](const Json& j) { return j.is_string() && j != ""; };
  const auto is_turn = [&](const Json& j) {
    return j.is_array() && j.size() == 2 && is_text(j[0]) && is_text(j[1]);
  };
  if (!turns.is_array() || !std::ranges::all_of(turns, is_turn))
    throw ContentsError(
        "\"history\" is {}, expected the earlier turns as [[\"question\", \"answer\"], ...] of texts",
        excerpt(it->dump(-1, ' ', false, Json::error_handler_t::replace)));
  for (const Json& turn : turns) out.emplace_back(turn[0], turn[1]);
  return out;
}

std::string alpaca_prompt(const Json& line, const AlpacaLine& x) {
  const char* chats_only = !x.history.empty() ? "history" : "system";
  if (!x.history.empty() || !system_of(line).empty())
    throw ContentsError(
        "\"{}\" needs a chat template, and the model has none. Set data.chat_template to a Jinja file or "
        "to builtin:chat",
        chats_only);
  if (x.input.empty())
    return "Below is an instruction that describes a task. Write a response that appropriately completes the "
           "request.\n\n### Instruction:\n" +
           x.instruction + "\n\n### Response:";
  return "Below is an instruction that describes a task, paired with an input that provides further context. "
         "Write a response that appropriately completes the request.\n\n### Instruction:\n" +
         x.instruction + "\n\n### Input:\n" + x.input + "\n\n### Response:";
}

}  // namespace redco

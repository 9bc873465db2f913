#include "chat/messages.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/words.h"
#include "jinja/ops.h"
#include "jinja/template.h"
#include "jinja/text.h"

namespace redco {

namespace {

using jinja::Kind;
using jinja::Value;

// The joined texts of a content in parts; nullopt if a part is not a text.
std::optional<std::string> joined_parts(const Value& content) {
  std::string out;
  for (const Value& part : content.items()) {
    const Value* type = part.is(Kind::dict) ? part.map().find(std::string_view("type")) : nullptr;
    const Value* text = part.is(Kind::dict) ? part.map().find(std::string_view("text")) : nullptr;
    if (part.is_string())
      out += part.text();
    else if (type && type->is_string() && type->text() == "text" && text && text->is_string())
      out += text->text();
    else
      return std::nullopt;
  }
  return out;
}

// A role that resembles one of the usual ones would silently be another role.
void check_role(const std::string& role, const std::string& where, std::size_t number) {
  for (const std::string known : {"assistant", "system", "user"}) {
    const int distance = edit_distance(role, known, 3);
    if (distance > 0 && distance <= (known == "user" ? 1 : 2))
      throw ContentsError("{}: message {}: the role is '{}'; did you mean {}?", where, number, excerpt(role),
                          known);
  }
}

}  // namespace

bool ChatMessage::is_empty() const {
  if (!jinja::strip(content).empty()) return false;
  if (json.empty()) return true;
  const nlohmann::json j = nlohmann::json::parse(json, nullptr, false);
  if (!j.is_object()) return true;
  for (const char* key : {"tool_calls", "function_call", "reasoning_content", "thinking", "reasoning"})
    if (const auto it = j.find(key);
        it != j.end() && !it->is_null() && *it != "" && *it != nlohmann::json::array())
      return false;
  return !j.contains("content") || j["content"].is_null() || j["content"].is_string();
}

std::vector<ChatMessage> parse_messages(std::string_view json, const std::string& where) {
  jinja::Budget budget = jinja::budget_for(json.size());
  jinja::BudgetScope scope(&budget);
  const Value all = jinja::from_json(json, where);
  if (!all.is(Kind::list) || all.items().empty())
    throw ContentsError("{}: expected messages: a JSON array of objects with role and content", where);
  std::vector<ChatMessage> out;
  for (std::size_t i = 0; i < all.items().size(); ++i) {
    const Value& m = all.items()[i];
    const Value* role = m.is(Kind::dict) ? m.map().find(std::string_view("role")) : nullptr;
    if (!role || !role->is_string())
      throw ContentsError("{}: message {}: expected an object with a role, a text", where, i + 1);
    check_role(role->text(), where, i + 1);
    ChatMessage message{role->text(), "", "", true};
    const Value* content = m.map().find(std::string_view("content"));
    bool plain = content && content->is_string();
    if (plain) message.content = content->text();
    if (content && !plain && !content->is(Kind::none) && !content->is(Kind::list))
      throw ContentsError("{}: message {}: the content is of type {}; expected a text", where, i + 1,
                          jinja::type_name(*content));
    const auto parts = content && content->is(Kind::list) ? joined_parts(*content) : std::nullopt;
    if (parts) message.content = *parts;
    if (const Value* weight = m.map().find(std::string_view("weight"))) {
      if (!weight->is_number())
        throw ContentsError("{}: message {}: expected a number as its weight", where, i + 1);
      message.train = weight->number() != 0;
    }
    if (parts && m.map().entries.size() == 2) plain = true;
    if (!plain || m.map().entries.size() != 2) {
      message.json = jinja::to_json(m, false, Value::none(), Value::none(), false);
      if (parts) {
        nlohmann::ordered_json flat = nlohmann::ordered_json::parse(message.json);
        flat["content"] = *parts;
        message.json = flat.dump();
      }
    }
    out.push_back(std::move(message));
  }
  return out;
}

}  // namespace redco

#include "chat/reasoning.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "jinja/text.h"

namespace redco {

namespace {

// Replaces the reasoning inside of a content; false if it has none.
bool replace_in(std::string& content, const std::string& text) {
  for (const auto& [open, close] :
       {std::pair("<think>", "</think>"), std::pair("<thinking>", "</thinking>"),
        std::pair("<reasoning>", "</reasoning>"), std::pair("[THINK]", "[/THINK]")}) {
    const std::size_t end = content.find(close);
    if (end == std::string::npos) continue;
    const std::size_t opened = content.rfind(open, end);
    const std::size_t begin = opened == std::string::npos ? 0 : opened + std::string_view(open).size();
    const std::string_view inside = std::string_view(content).substr(begin, end - begin);
    const std::string_view thought = jinja::strip(inside);
    if (thought.empty()) return false;
    content.replace(begin + static_cast<std::size_t>(thought.data() - inside.data()), thought.size(), text);
    return true;
  }
  return false;
}

}  // namespace

std::optional<ChatMessage> with_reasoning(const ChatMessage& m, const std::string& text) {
  ChatMessage out = m;
  if (m.json.empty()) return replace_in(out.content, text) ? std::optional(out) : std::nullopt;
  nlohmann::ordered_json j = nlohmann::ordered_json::parse(m.json, nullptr, false);
  if (!j.is_object()) return std::nullopt;
  for (const char* field : {"reasoning_content", "thinking", "reasoning"})
    if (const auto it = j.find(field);
        it != j.end() && it->is_string() && !jinja::strip(it->get_ref<const std::string&>()).empty()) {
      *it = text;
      out.json = j.dump();
      return out;
    }
  const auto content = j.find("content");
  if (content == j.end() || !content->is_string() || !replace_in(content->get_ref<std::string&>(), text))
    return std::nullopt;
  out.content = *content;
  out.json = j.dump();
  return out;
}

}  // namespace redco

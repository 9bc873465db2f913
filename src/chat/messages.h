// Messages of a conversation, as in the JSON of OpenAI and transformers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace redco {

struct ChatMessage {
  std::string role, content;
  // The message's JSON object if it has more than these two texts (tool_calls, a content in parts, ...); it
  // has precedence over role and content. "" otherwise.
  std::string json = {};
  // false: the loss ignores this turn ("weight": 0 in its JSON).
  bool train = true;

  bool is_assistant() const { return role == "assistant" || role == "model"; }
  // Whether it has neither a content nor tool calls nor reasoning.
  bool is_empty() const;
};

// The messages of a JSON array [{"role": ..., "content": ...}, ...]. ContentsError, starting with `where`,
// for anything else: an empty array, a message without a role, a role that is a misspelling, a content that
// is neither a text nor null nor a list. A content in parts that are all texts becomes their concatenation.
std::vector<ChatMessage> parse_messages(std::string_view json, const std::string& where);

}  // namespace redco

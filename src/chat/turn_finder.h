// Finds the assistant's turns in the text of a conversation by rendering prefixes and variants of it.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "chat/chat_template.h"

namespace redco {

// A text that occurs in no conversation and that templates don't change.
inline constexpr std::string_view kTurnMarker = "redcoturn7f3a91c5";

class TurnFinder {
 public:
  // A rendered part of the conversation. ContentsError: the template rejects it.
  using Render = std::function<std::string(std::span<const ChatMessage>, bool generation_prompt)>;
  // text: of the whole conversation. Both must live as long as the finder.
  TurnFinder(std::span<const ChatMessage> messages, const std::string& text, Render render)
      : messages_(messages), text_(text), render_(std::move(render)) {}

  // The span of message i; nullopt if it is not found, for the reason why().
  std::optional<TextSpan> find(std::size_t i);
  const std::string& why() const { return why_; }

 private:
  std::optional<std::string> tried(std::span<const ChatMessage> messages, bool generation_prompt);
  std::string_view text_from(std::size_t begin, std::size_t end) const;
  std::optional<std::size_t> find_begin(std::size_t i);
  std::optional<std::size_t> find_end(std::size_t i, std::size_t begin);
  std::optional<TextSpan> find_content(std::size_t i);

  std::span<const ChatMessage> messages_;
  const std::string& text_;
  Render render_;
  std::string why_;
};

}  // namespace redco

// The reasoning of an assistant's message: what a reasoning model writes before its answer.
#pragma once

#include <optional>
#include <string>

#include "chat/messages.h"

namespace redco {

// The message with another text in place of its reasoning: the first of the fields reasoning_content,
// thinking and reasoning that is not blank, else the part of the content before </think>, </thinking>,
// </reasoning> or [/THINK] (and after the tag that opens it). nullopt: it has no reasoning, or a blank one.
std::optional<ChatMessage> with_reasoning(const ChatMessage& m, const std::string& text);

}  // namespace redco

// Lines in the formats of Alpaca and ShareGPT, in terms of the forms that example_lines.h reads.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace redco {

// A text under a line's key. ContentsError if the value is not a text.
const std::string& as_text(const nlohmann::ordered_json& value, const std::string& key);

// ShareGPT: [{"from", "value"}...] as messages [{"role", "content"}...]. human and user become user; gpt,
// assistant and model become assistant; observation becomes tool; system and tool stay; function_call becomes
// an assistant's message with tool_calls; another role is a ContentsError that names it. A turn's "weight" is
// kept, and the line's text "system" (or "system_prompt") becomes the first message. `key`: of `turns`, for
// messages.
nlohmann::ordered_json sharegpt_messages(const nlohmann::ordered_json& line,
                                         const nlohmann::ordered_json& turns, const std::string& key);

// Alpaca. `input` may be empty. history: earlier questions with their answers, the oldest first.
struct AlpacaLine {
  std::string instruction, input, output;
  std::vector<std::pair<std::string, std::string>> history = {};
};
// The line's "history", [["question", "answer"]...] as LLaMA-Factory has it; empty if it is missing or null.
// ContentsError for another form or an empty text.
std::vector<std::pair<std::string, std::string>> alpaca_history(const nlohmann::ordered_json& line);
// The line's text "system" as the first message; the turns of the history; a user's message: the instruction,
// and after a blank line the input, if there is one; the assistant's: the output.
nlohmann::ordered_json alpaca_messages(const nlohmann::ordered_json& line, const AlpacaLine& example);
// The prompt of Stanford's repository, for models without a chat template. ContentsError if the line has a
// "system" text or a history, for which this prompt has no place.
std::string alpaca_prompt(const nlohmann::ordered_json& line, const AlpacaLine& example);

}  // namespace redco

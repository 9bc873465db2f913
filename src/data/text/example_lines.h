// Lines of JSONL data: from a JSON object to token ids and the loss mask.
//
//   {"text": "..."}                          the loss counts every token
//   {"prompt": "...", "completion": "..."}   ... the tokens of the completion, and the end token after it.
//                                            Each may be a list of messages (TRL's conversational form)
//   {"messages": [{"role", "content"}...]}   ... the assistant's turns, formatted by the model's chat
//                                            template, which also gets "tools" and "chat_template_kwargs"
//   {"conversations": [{"from", "value"}...]}   ShareGPT's form of messages (data/text/example_shapes.h)
//   {"instruction", "input", "output"}       Alpaca's form: messages if there is a template, else prompt and
//                                            completion
// Other keys are ignored; "id" is kept. A line has exactly one of these forms.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "chat/chat_template.h"
#include "data/data_settings.h"
#include "tokenizers/tokenizer.h"

namespace redco {

// Raised when a line could give other tokens.
inline constexpr u32 kExampleVersion = 1;

enum class ExampleKind : std::uint8_t { text, completion, chat };

struct TokenizedExample {
  ExampleKind kind = ExampleKind::text;
  std::vector<i32> ids;               // none: "text" is empty, blank or null
  std::vector<std::uint8_t> in_loss;  // loss mask, one per id; the first id has no context and never counts
  // Length of the prompt: the ids before the completion, or before the assistant's last turn. 0: none.
  i64 prompt_tokens = 0;
  std::string reference;  // the completion, or the assistant's last turn
  std::string id;         // "id" as JSON text; "": none
  bool cut = false;       // the text was truncated
};

class ExampleLines {
 public:
  // The tokenizer and the template (null: the model has none) must outlive the object.
  ExampleLines(const Tokenizer& tokenizer, const ChatTemplate* chat, const ExampleFields& fields)
      : tokenizer_(tokenizer), chat_(chat), fields_(fields.without_shared()) {}

  // Text: the tokenizer adds its special tokens, and the end token follows. Completion: if the ids of prompt
  // + completion begin with the ids of the prompt, those ids, so that words are tokenized as in one text;
  // otherwise the ids of each part; then the end token. ContentsError with the reason, without the place.
  TokenizedExample read(std::string_view line) const;

  // Part of a cache's key: everything that a line's tokens depend on, except the line.
  std::string fingerprint() const;

  // The ids of a prompt for generation, without an end token that the tokenizer adds. A prompt that begins
  // with the text of the token bos, such as a rendered chat, gets no second one.
  static std::vector<i32> prompt_ids(const Tokenizer& tokenizer, std::string_view prompt);

 private:
  const Tokenizer& tokenizer_;
  const ChatTemplate* chat_;
  ExampleFields fields_;
};

// Logs once which end token follows `what` ("documents"), or that the tokenizer names none.
void note_end_token(const Tokenizer& tokenizer, const std::string& what);

}  // namespace redco

// Lines of JSONL data: from a JSON object to token ids and which of them the loss counts.
//
//   {"text": "..."}                          the loss counts every token
//   {"prompt": "...", "completion": "..."}   ... those of the completion, and the end token behind it
//   {"messages": [{"role", "content"}...]}   ... what the assistant says, through the model's chat template;
//                                            "tools" and "chat_template_kwargs" beside it go to the template
// Other keys are passed over; "id" is kept. A line has exactly one of the three.
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

// Raised whenever a line could give other tokens.
inline constexpr u32 kExampleVersion = 1;

enum class ExampleKind : std::uint8_t { text, completion, chat };

struct TokenizedExample {
  ExampleKind kind = ExampleKind::text;
  std::vector<i32> ids;
  std::vector<std::uint8_t> in_loss;  // for each id: the loss counts it, where a token stands before it
  // What a model is asked to go on from: the ids up to the completion, or to the assistant's last turn. 0:
  // none.
  i64 prompt_tokens = 0;
  std::string reference;  // the completion, or what the assistant's last turn says
  std::string id;         // JSON text of "id"; "" is none
  bool cut = false;       // something of the text was left out for its length
};

class ExampleLines {
 public:
  // The tokenizer and the template (null: the model has none) must outlive it.
  ExampleLines(const Tokenizer& tokenizer, const ChatTemplate* chat, ExampleFields fields)
      : tokenizer_(tokenizer), chat_(chat), fields_(std::move(fields)) {}

  // Text: the tokenizer's special tokens around it, and its end token. Completion: the ids of prompt and
  // completion together where they begin with those of the prompt, so that words are cut as in one text, else
  // of each alone; then the end token. ContentsError with the reason alone, without the line's place.
  TokenizedExample read(std::string_view line) const;

  // Into a cache's key: everything but the line that its tokens depend on.
  std::string fingerprint() const;

  // The ids that a model is given for a prompt: an end token that the tokenizer puts behind is no part of it.
  static std::vector<i32> prompt_ids(const Tokenizer& tokenizer, std::string_view prompt);

 private:
  const Tokenizer& tokenizer_;
  const ChatTemplate* chat_;
  ExampleFields fields_;
};

}  // namespace redco

// Chat templates: render messages as the text that the model expects. The text is exactly that of
// transformers' apply_chat_template (see jinja/template.h).
//
//   const auto t = ChatTemplate::load("path/to/hf_folder");                 // nullopt: the folder has none
//   const std::string text = t->render({{"user", "Hi"}}, {.add_generation_prompt = true});
//   const auto ids = tokenizer.encode(text, /*add_special=*/false);         // the template writes <s>
//
//   const auto messages = parse_messages(line_json, "train.jsonl:7");       // training
//   const TrainingText chat = t->render_training(messages);
//   const ChatTokens tokens = tokenize_chat(tokenizer, chat);               // ids, and a loss mask
//
// A template is immutable after loading and thread-safe. Templates are not trusted: nesting, steps, memory
// and the size of the text are bounded, and a template can read its variables only.
//
// Errors are ContentsErrors. Errors of a template give `where:line:column`, what was found and what was
// expected. If a template rejects a conversation (raise_exception), the error quotes its message.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/types.h"
#include "chat/messages.h"
#include "tokenizers/tokenizer.h"

namespace redco {

namespace jinja {
class Template;
}

// The template's variables in addition to the messages.
struct ChatVariables {
  bool add_generation_prompt = false;
  std::string tools = {};      // a JSON array of tool schemas; "": none
  std::string documents = {};  // a JSON array; "": none
  std::string more = {};       // a JSON object of further variables, e.g. {"enable_thinking": false}
};

struct TextSpan {
  std::size_t begin, end;  // bytes
  bool operator==(const TextSpan&) const = default;
};

struct TrainingText {
  std::string text;
  // The spans that the loss counts: the assistant's turns including their end-of-turn tokens. In order,
  // disjoint.
  std::vector<TextSpan> spans;
};

class ChatTemplate {
 public:
  // Loads chat_template.jinja of a model's folder, else "chat_template" of its tokenizer_config.json: a text,
  // or a list of {name, template}, of which "tool_use" is used with tools and "default" without. The texts of
  // bos_token, eos_token, ... come from tokenizer_config.json or special_tokens_map.json.
  static std::optional<ChatTemplate> load(const std::string& folder);

  // special: variables {"bos_token", "<s>"}, ... of the template. where: the file, for error messages.
  static ChatTemplate parse(std::string_view text, const std::string& where,
                            std::vector<std::pair<std::string, std::string>> special = {});

  std::string render(std::span<const ChatMessage> messages, const ChatVariables& variables = {}) const;
  std::string render(const std::vector<ChatMessage>& messages, const ChatVariables& variables = {}) const {
    return render(std::span<const ChatMessage>(messages), variables);
  }

  // The text of a conversation and the spans of the assistant's turns. The spans are the {% generation %}
  // blocks if the template has them. Otherwise a span starts after the generation prompt of its turn and ends
  // with its end-of-turn token, without white space after it. ContentsError, with the reason, if a turn is
  // not found in the text.
  TrainingText render_training(std::span<const ChatMessage> messages,
                               const ChatVariables& variables = {}) const;

  // Adds variables as in parse(), of names that the template does not have yet.
  void add_special(const std::vector<std::pair<std::string, std::string>>& special);

  const std::string& where() const { return where_; }
  // The text of the (default) template, which a saved model's folder gets as chat_template.jinja.
  const std::string& source() const { return source_; }

 private:
  ChatTemplate() = default;
  const jinja::Template& chosen(const ChatVariables& variables) const;

  std::string where_, source_;
  std::shared_ptr<const jinja::Template> default_, tools_;
  std::vector<std::pair<std::string, std::string>> special_;
};

struct ChatTokens {
  std::vector<i32> ids;  // of the whole text, equal to those of apply_chat_template(tokenize=True)
  // The loss mask, one per id: 1 if the token has a byte inside of a span.
  std::vector<std::uint8_t> in_loss;
};
ChatTokens tokenize_chat(const Tokenizer& tokenizer, const TrainingText& chat);

}  // namespace redco

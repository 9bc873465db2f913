// Chat templates: from messages to the text that a model was trained on, exactly as transformers'
// apply_chat_template renders it (Jinja with trim_blocks, lstrip_blocks, loop controls, an immutable sandbox,
// tojson, raise_exception, strftime_now and {% generation %}).
//
//   const auto t = ChatTemplate::load("path/to/hf_folder");                 // nullopt: the folder has none
//   const std::string text = t->render({{"user", "Hi"}}, {.add_generation_prompt = true});
//   const auto ids = tokenizer.encode(text, /*add_special=*/false);         // the template wrote <s> itself
//
//   const auto messages = parse_messages(line_json, "train.jsonl:7");       // training
//   const TrainingText chat = t->render_training(messages);
//   const ChatTokens tokens = tokenize_chat(tokenizer, chat);               // ids, and which the loss counts
//
// A template is const after loading: any number of threads may use one at once. It is taken to be hostile:
// nesting, steps, memory and the size of the text are bounded, and it reads nothing but its variables.
//
// Errors are ContentsErrors. Those of a template say `where:line:column`, what was found and what was
// expected; a template that refuses a conversation (raise_exception) is quoted.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/types.h"
#include "tokenizers/tokenizer.h"

namespace redco {

namespace jinja {
class Template;
}

struct ChatMessage {
  std::string role, content;
  // The message's whole JSON object where it has more than those two texts (tool_calls, a content in parts,
  // ...); it wins over role and content. "" else.
  std::string json = {};
  // false: the loss doesn't count this turn ("weight": 0 in its JSON).
  bool train = true;
};

// The messages of a JSON array [{"role": ..., "content": ...}, ...]. ContentsError, beginning with `where`,
// for anything else, an empty array, or a message without a role.
std::vector<ChatMessage> parse_messages(std::string_view json, const std::string& where);

// What a template sees beside the messages.
struct ChatVariables {
  bool add_generation_prompt = false;
  std::string tools = {};      // a JSON array of tools' schemas; "" is none
  std::string documents = {};  // a JSON array; "" is none
  std::string more = {};       // a JSON object of further variables, e.g. {"enable_thinking": false}
};

struct TextSpan {
  std::size_t begin, end;  // bytes
  bool operator==(const TextSpan&) const = default;
};

struct TrainingText {
  std::string text;
  // Where the loss counts: what the assistant says, up to and with the end of its turn. In order, disjoint.
  std::vector<TextSpan> spans;
};

class ChatTemplate {
 public:
  // chat_template.jinja of a model's folder, else "chat_template" in its tokenizer_config.json (a text, or a
  // list of {name, template}, of which "tool_use" is taken where there are tools and "default" else). The
  // texts of bos_token, eos_token, ... come from tokenizer_config.json or special_tokens_map.json.
  static std::optional<ChatTemplate> load(const std::string& folder);

  // special: {"bos_token", "<s>"}, ... as variables of the template. `where` is for messages.
  static ChatTemplate parse(std::string_view text, const std::string& where,
                            std::vector<std::pair<std::string, std::string>> special = {});

  std::string render(std::span<const ChatMessage> messages, const ChatVariables& variables = {}) const;
  std::string render(const std::vector<ChatMessage>& messages, const ChatVariables& variables = {}) const {
    return render(std::span<const ChatMessage>(messages), variables);
  }

  // The text of a whole conversation and the spans of the assistant's turns: the {% generation %} blocks
  // where the template has them; else from the generation prompt before a turn to its end-of-turn token
  // (white space that the template puts behind that is not counted). ContentsError where a turn can't be
  // found in the text, with the reason.
  TrainingText render_training(std::span<const ChatMessage> messages,
                               const ChatVariables& variables = {}) const;

  const std::string& where() const { return where_; }
  // The template's text (of the default one): what a saved model's folder gets as chat_template.jinja.
  const std::string& source() const { return source_; }

 private:
  ChatTemplate() = default;
  const jinja::Template& chosen(const ChatVariables& variables) const;

  std::string where_, source_;
  std::shared_ptr<const jinja::Template> default_, tools_;
  std::vector<std::pair<std::string, std::string>> special_;
};

struct ChatTokens {
  std::vector<i32> ids;  // of the whole text, as apply_chat_template(tokenize=True) gives them
  // One for each id: 1 where the token has a byte inside a span.
  std::vector<std::uint8_t> in_loss;
};
ChatTokens tokenize_chat(const Tokenizer& tokenizer, const TrainingText& chat);

}  // namespace redco

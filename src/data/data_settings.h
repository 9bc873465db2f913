// The `data:` section: what is trained on and how it is cut into examples.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/settings.h"

namespace redco {

// The names of a JSONL line's keys.
struct ExampleFields {
  std::optional<std::string> text = "text", prompt = "prompt", completion = "completion",
                             messages = "messages", id = "id";

  void visit(SettingsVisitor& v) {
    v.field("text", text, "key of a text that is learnt whole; ~: no line has one").looks_like("a key");
    v.field("prompt", prompt, "key of what is given to the model; ~: no line has one").looks_like("a key");
    v.field("completion", completion, "key of what the model is to answer").looks_like("a key");
    v.field("messages", messages, "key of a conversation; ~: no line has one").looks_like("a key");
    v.field("id", id, "key of a line's name, which predictions repeat").looks_like("a key");
  }
};

struct DataSettings {
  std::vector<std::string> train, eval;
  std::optional<std::string> format;
  std::string documents = "file";
  std::optional<i64> max_length;
  bool packing = true;
  std::optional<bool> attention_across;
  std::optional<std::string> too_long;
  bool skip_bad = false;
  std::optional<std::string> chat_template;
  ExampleFields fields;

  void visit(SettingsVisitor& v) {
    v.field("train", train, "training files, plain or .gz; builtin:chat is a small generated set of chats")
        .path()
        .one_or_more();
    v.field("eval", eval, "evaluation files; [] is no evaluation; builtin:chat: chats not trained on")
        .path()
        .one_or_more();
    v.field(
         "format", format,
         "text is plain UTF-8 text; jsonl is one object a line: {\"text\"}, {\"prompt\", \"completion\"} or "
         "{\"messages\"}; ~ is jsonl where all files are called *.jsonl or *.ndjson (or so with .gz)")
        .one_of({"text", "jsonl"});
    v.field("documents", documents,
            "what one document of a text file is; behind each comes the tokenizer's end token")
        .one_of({"file", "line", "paragraph"});
    v.field("max_length", max_length, "tokens of a row; ~ is the model's maximum")
        .at_least(1)
        .at_most(1 << 24);
    v.field(
        "packing", packing,
        "text: windows of max_length tokens, across lines (always); jsonl: several whole examples in a row "
        "of training, else one");
    v.field("attention_across", attention_across,
            "whether a token sees the samples before its own in its row; ~: in text, not in packed examples");
    v.field(
         "too_long", too_long,
         "examples of more than max_length tokens: split makes several of one, truncate leaves out the end, "
         "skip the example; ~ is split for texts, truncate for others")
        .one_of({"split", "truncate", "skip", "error"});
    v.field("skip_bad", skip_bad, "count, report and pass over bad lines of jsonl; false stops at the first");
    v.field("chat_template", chat_template,
            "file of a chat template (Jinja), or builtin:chat; ~ is the model's own")
        .path();
    v.section("fields", fields, "The names of a jsonl line's keys");
  }

  // Whether the files hold lines of JSON; see `format`.
  bool is_jsonl() const;
  // Whether rows have several samples that don't see one another.
  bool segmented() const {
    return is_jsonl() ? packing && !attention_across.value_or(false) : !attention_across.value_or(true);
  }
};

}  // namespace redco

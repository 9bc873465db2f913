// Records whose prompts and answers are texts or messages (TRL's standard and conversational forms), as token
// ids:
//
//   {"prompt": "...", "chosen": "...", "rejected": "..."}       texts; an answer ends with the end token
//   {"prompt": [{"role", "content"}...], "chosen": [...], "rejected": [...]}   messages, rendered by the chat
//                             template, which also gets "tools" and "chat_template_kwargs"
//   {"chosen": [...], "rejected": [...]}   the common first messages are the prompt
//   {"chosen": "...", "rejected": "..."}   the common beginning of the texts is the prompt
//
// Answers in messages may repeat the prompt's messages. LLaMA-Factory's {"conversations": [{"from",
// "value"}...], "chosen": {"from", "value"}, "rejected": {...}} is read as such.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "chat/chat_template.h"
#include "pipeline/records.h"
#include "tokenizers/tokenizer.h"

namespace redco {

// Reads records with the keys that data.fields names (prompt, completion, messages, chosen, rejected): `read`
// finds their values under the usual names.
std::shared_ptr<const Dataset> read_chat_records(const DataRequest& request, const DataSettings& settings,
                                                 const ReadRecord& read);

// The prompt of a record that an answer follows: a text, or messages with the template's generation prompt.
// ContentsError with the record's place; UsageError for messages without a template (null).
std::vector<i32> prompt_of_record(const Tokenizer& tokenizer, const ChatTemplate* chat, const Record& record);

// The prompt of {"chosen", "rejected"} without "prompt", as JSON: their common first messages, or a text,
// their common beginning. ContentsError: they have none.
std::string shared_prompt(const Record& record);

// The text under a key, or the content of its only message.
std::string answer_text(const Record& record, const std::string& key);

struct Preference {
  std::vector<i32> prompt, answers[2];  // chosen, rejected
  std::vector<i32> tail;                // what the template renders after an answer: a line break
  std::string chosen;                   // its text
};
// ContentsErrors: an empty answer, two equal answers, answers whose prompts the template renders differently.
Preference preference_of_record(const Tokenizer& tokenizer, const ChatTemplate* chat, const Record& record);

// One answer, and whether people call it good (KTO): {"prompt", "completion", "label": true or false}, where
// prompt and completion are texts or messages.
struct JudgedAnswer {
  std::vector<i32> prompt, answer, tail;
  std::string text;
  bool good = false;
};
JudgedAnswer judged_answer_of_record(const Tokenizer& tokenizer, const ChatTemplate* chat,
                                     const Record& record);

// The tokens of a text that a reward model scores: {"prompt", "completion"} (texts or messages),
// {"messages"}, or
// {"prompt"} or {"text"}, a text that is scored unchanged.
std::vector<i32> scored_ids_of_record(const Tokenizer& tokenizer, const ChatTemplate* chat,
                                      const Record& record);

// What the template renders after an answer's text: the end token and a line break. {}: the prompt is a text.
std::vector<i32> closing_of_record(const Tokenizer& tokenizer, const ChatTemplate* chat,
                                   const Record& record);
// Adds it to a generated answer, which may have the end token, so that a reward model reads the conversation
// as in its training.
void close_answer(std::vector<i32>& ids, std::span<const i32> closing);

// Removes tokens so that prompt and answer have at most
// `max_length`, first the prompt's beginning, then the answer's end.
void fit_answer(std::vector<i32>& prompt, std::vector<i32>& answer, i64 max_length);

// Warns, for a model with a chat template, of a prompt that is a text without the marks of a template, such
// as <|im_start|> or [INST].
void warn_of_plain_prompt(const Record& record);

}  // namespace redco

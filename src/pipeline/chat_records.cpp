#include "pipeline/chat_records.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "data/text/example_json.h"
#include "data/text/example_shapes.h"
#include "data/text/field_hints.h"
#include "pipeline/token_rows.h"

namespace redco {

namespace {

using ChatJson = nlohmann::ordered_json;

bool is_list(const Record& r, const std::string& key) {
  return r.has(key) && ChatJson::parse(r.json(key)).is_array();
}

ChatJson list_of(const Record& r, const std::string& key) {
  const ChatJson list = ChatJson::parse(r.json(key));
  if (!list.is_array() || list.empty())
    r.fail("\"" + key + "\" is of type " + list.type_name() +
           "; expected a list of messages, as the other keys of this record have");
  return list;
}

const ChatTemplate& need_template(const ChatTemplate* chat) {
  if (!chat)
    throw UsageError(
        "[data] the data have conversations (messages), but the model has no chat template. Set "
        "data.chat_template to a Jinja file or to builtin:chat");
  return *chat;
}

struct Answered {
  std::vector<i32> prompt, answer, tail;  // tail: what the template renders after the answer
  std::string text;                       // of the last message
};

// The tokens of prompt + answer, where the answer is what the loss of pipeline lm would count.
Answered answered(const Tokenizer& tokenizer, const ChatTemplate& chat, const Record& r,
                  const ChatVariables& variables, const ChatJson& prompt, const ChatJson& answer,
                  const std::string& key) {
  ChatJson all = prompt;
  all.insert(all.end(), answer.begin(), answer.end());
  std::vector<ChatMessage> messages = parse_messages(all.dump(), r.where() + ": \"" + key + "\"");
  for (std::size_t i = 0; i < prompt.size(); ++i) messages[i].train = false;
  const ChatMessage& last = messages.back();
  if (!last.is_assistant()) r.fail("\"" + key + "\" does not end with a message of the assistant");
  if (last.is_empty()) r.fail("the answer \"" + key + "\" is empty");
  const TrainingText text = chat.render_training(messages, variables);
  const ChatTokens tokens = tokenize_chat(tokenizer, text);
  const auto begin = std::find(tokens.in_loss.begin(), tokens.in_loss.end(), 1) - tokens.in_loss.begin();
  const auto end = tokens.in_loss.rend() - std::find(tokens.in_loss.rbegin(), tokens.in_loss.rend(), 1);
  if (begin >= end) r.fail("the answer \"" + key + "\" has no tokens");
  return {{tokens.ids.begin(), tokens.ids.begin() + begin},
          {tokens.ids.begin() + begin, tokens.ids.begin() + end},
          {tokens.ids.begin() + end, tokens.ids.end()},
          last.content};
}

std::vector<i32> answer_ids(const Tokenizer& tokenizer, const Record& r, const std::string& text,
                            const std::string& key) {
  if (text.empty()) r.fail("the answer \"" + key + "\" is empty");
  std::vector<i32> ids = tokenizer.encode(text, false);
  const auto eos = tokenizer.special().eos;
  if (eos && (ids.empty() || ids.back() != *eos)) ids.push_back(*eos);
  if (ids.empty()) r.fail("the answer \"" + key + "\" has no tokens");
  return ids;
}

// The length of the texts' common beginning, without a space at its end (which belongs to the answers) and
// without a part of a character.
std::size_t common_beginning(const Record& r, const std::string& a, const std::string& b) {
  std::size_t n =
      static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  while (n > 0 && n < a.size() && (static_cast<unsigned char>(a[n]) & 0xC0) == 0x80) --n;
  if (n > 0 && a[n - 1] == ' ') --n;
  if (n == 0)
    r.fail(
        "no \"prompt\", and \"chosen\" and \"rejected\" have no common beginning. data.fields.prompt names another "
        "key, such as question");
  return n;
}

// {"from": "gpt", "value": "..."} or {"role", "content"}, a single message.
bool is_message(const Record& r, const std::string& key) {
  return r.has(key) && ChatJson::parse(r.json(key)).is_object();
}
// Turns of ShareGPT, [{"from", "value"}...], as messages; others stay.
ChatJson as_messages(const Record& r, const ChatJson& turns, const std::string& key, bool with_system) {
  if (turns.empty() || !turns[0].is_object() || !turns[0].contains("from")) return turns;
  try {
    return sharegpt_messages(with_system ? ChatJson::parse(r.json()) : ChatJson::object(), turns, key);
  } catch (const ContentsError& e) {
    r.fail(e.what());
  }
}
ChatJson prompt_messages(const Record& r) {
  if (is_list(r, "prompt")) return list_of(r, "prompt");
  if (!r.has("prompt") && is_list(r, "conversations"))
    return as_messages(r, list_of(r, "conversations"), "conversations", true);
  return ChatJson::array({{{"role", "user"}, {"content", r.text("prompt")}}});
}
ChatJson answer_messages(const Record& r, const std::string& key) {
  if (is_message(r, key)) return as_messages(r, ChatJson::array({ChatJson::parse(r.json(key))}), key, false);
  if (is_list(r, key)) return as_messages(r, list_of(r, key), key, false);
  return ChatJson::array({{{"role", "assistant"}, {"content", r.text(key)}}});
}
// Whether two messages are the same, whatever the order of their members. Parquet has null for missing ones.
bool same_message(const ChatJson& a, const ChatJson& b) {
  const auto members = [](const ChatJson& m) {
    nlohmann::json out = nlohmann::json::object();
    for (const auto& [key, value] : m.items())
      if (!value.is_null()) out[key] = value;
    return out;
  };
  return a.is_object() && b.is_object() ? members(a) == members(b) : a == b;
}
// Removes the prompt's messages from the beginning of an answer that repeats them.
void remove_prompt(const ChatJson& prompt, ChatJson& answer) {
  if (answer.size() > prompt.size() && std::equal(prompt.begin(), prompt.end(), answer.begin(), same_message))
    answer.erase(answer.begin(), answer.begin() + static_cast<std::ptrdiff_t>(prompt.size()));
}

// Prompt and answer of {"prompt", "completion"}.
void read_answer(const Tokenizer& tokenizer, const ChatTemplate* chat, const Record& r, JudgedAnswer& out) {
  if (!is_list(r, "prompt") && !is_list(r, "completion")) {
    out.prompt = prompt_ids(tokenizer, r, r.text("prompt"));
    out.text = r.text("completion");
    out.answer = answer_ids(tokenizer, r, out.text, "completion");
    return;
  }
  const ChatJson prompt = prompt_messages(r);
  ChatJson answer = answer_messages(r, "completion");
  remove_prompt(prompt, answer);
  const ChatVariables variables = chat_variables(ChatJson::parse(r.json()));
  Answered a = answered(tokenizer, need_template(chat), r, variables, prompt, answer, "completion");
  out.prompt = std::move(a.prompt);
  out.answer = std::move(a.answer);
  out.tail = std::move(a.tail);
  out.text = a.text;
}

}  // namespace

void warn_of_plain_prompt(const Record& r) {
  if (!r.has("prompt")) return;
  for (const char* key : {"prompt", "completion", "chosen"})
    if (is_list(r, key) || is_message(r, key)) return;  // a chat
  const std::string prompt = r.text("prompt");
  for (const char* mark : {"<|", "[INST]", "<start_of_turn>", "<turn>", "[SYSTEM_PROMPT]"})
    if (prompt.find(mark) != std::string::npos) return;
  warn(
      "[data] {}: the prompts are texts without the marks of a chat, but the model has a chat template, which is "
      "not applied to texts. For chats write \"prompt\" as messages: [{{\"role\": \"user\", \"content\": "
      "\"...\"}}]",
      r.where());
}

std::shared_ptr<const Dataset> read_chat_records(const DataRequest& request, const DataSettings& settings,
                                                 const ReadRecord& read) {
  const ExampleFields &f = settings.fields, usual;
  std::vector<std::pair<std::string, std::string>> renamed;
  for (const auto key : {&ExampleFields::prompt, &ExampleFields::completion, &ExampleFields::messages,
                         &ExampleFields::chosen, &ExampleFields::rejected})
    if (f.*key && f.*key != usual.*key) renamed.emplace_back(*(f.*key), *(usual.*key));
  if (renamed.empty()) return read_records(request, settings, read);
  return read_records(request, settings,
                      [&renamed, &read](const Record& r) { return read(r.renamed(renamed)); });
}

std::vector<i32> prompt_of_record(const Tokenizer& tokenizer, const ChatTemplate* chat, const Record& r) {
  if (!is_list(r, "prompt")) return prompt_ids(tokenizer, r, r.text("prompt"));
  const auto messages = parse_messages(r.json("prompt"), r.where() + ": \"prompt\"");
  ChatVariables variables = chat_variables(ChatJson::parse(r.json()));
  variables.add_generation_prompt = true;
  std::vector<i32> ids = tokenizer.encode(need_template(chat).render(messages, variables), false);
  if (ids.empty()) r.fail("the chat template renders an empty prompt");
  return ids;
}

std::string answer_text(const Record& r, const std::string& key) {
  if (!is_list(r, key)) return r.text(key);
  const auto messages = parse_messages(r.json(key), r.where() + ": \"" + key + "\"");
  return messages.back().content;
}

std::string shared_prompt(const Record& r) {
  if (!is_list(r, "chosen") && !is_list(r, "rejected")) {
    const std::string chosen = r.text("chosen");
    const std::string prompt = chosen.substr(0, common_beginning(r, chosen, r.text("rejected")));
    return ChatJson(prompt).dump(-1, ' ', false, ChatJson::error_handler_t::replace);
  }
  const ChatJson a = answer_messages(r, "chosen"), b = answer_messages(r, "rejected");
  ChatJson prompt = ChatJson::array();
  for (std::size_t i = 0; i + 1 < std::min(a.size(), b.size()) && same_message(a[i], b[i]); ++i)
    prompt.push_back(a[i]);
  if (prompt.empty())
    r.fail(
        "no \"prompt\", and \"chosen\" and \"rejected\" do not begin with the same message. data.fields.prompt names "
        "another key");
  return prompt.dump(-1, ' ', false, ChatJson::error_handler_t::replace);
}

Preference preference_of_record(const Tokenizer& tokenizer, const ChatTemplate* chat, const Record& r) {
  static const std::string kKeys[2] = {"chosen", "rejected"};
  Preference out;
  for (const std::string& key : kKeys)
    if (!r.has(key)) {
      const ChatJson members = ChatJson::parse(r.json());
      std::vector<std::string> keys;
      for (const auto& [name, value] : members.items()) keys.push_back(name);
      r.fail(fmt::format("no \"{0}\"; {1}. data.fields.{0} names another key", key, listed_keys(keys)));
    }
  if (r.json("chosen") == r.json("rejected"))
    r.fail("\"chosen\" equals \"rejected\", so there is nothing to prefer");
  const bool turns = !r.has("prompt") && is_list(r, "conversations");
  if (!turns && !is_list(r, "prompt") && !is_list(r, "chosen") && !is_list(r, "rejected")) {
    const std::string texts[2] = {r.text(kKeys[0]), r.text(kKeys[1])};
    const std::size_t shared = r.has("prompt") ? 0 : common_beginning(r, texts[0], texts[1]);
    out.prompt = prompt_ids(tokenizer, r, r.has("prompt") ? r.text("prompt") : texts[0].substr(0, shared));
    for (const int k : {0, 1}) out.answers[k] = answer_ids(tokenizer, r, texts[k].substr(shared), kKeys[k]);
    out.chosen = texts[0].substr(shared);
    return out;
  }
  ChatJson answers[2] = {answer_messages(r, kKeys[0]), answer_messages(r, kKeys[1])};
  const ChatJson prompt = r.has("prompt") || turns ? prompt_messages(r) : ChatJson::parse(shared_prompt(r));
  for (ChatJson& a : answers) remove_prompt(prompt, a);
  const ChatVariables variables = chat_variables(ChatJson::parse(r.json()));
  for (const int k : {0, 1}) {
    Answered a = answered(tokenizer, need_template(chat), r, variables, prompt, answers[k], kKeys[k]);
    if (k == 1 && a.prompt != out.prompt)
      r.fail("the chat template renders the prompt differently before the two answers");
    out.prompt = std::move(a.prompt);
    out.answers[k] = std::move(a.answer);
    out.tail = std::move(a.tail);
    if (k == 0) out.chosen = a.text;
  }
  return out;
}

JudgedAnswer judged_answer_of_record(const Tokenizer& tokenizer, const ChatTemplate* chat, const Record& r) {
  JudgedAnswer out;
  if (r.has("chosen") && r.has("rejected") && !r.has("completion"))
    r.fail(
        "a pair of answers; dpo.loss_type=kto reads one answer per record: \"prompt\", \"completion\" and "
        "\"label\" (true: good)");
  const ChatJson label = ChatJson::parse(r.json("label"));
  if (label == true || label == 1 || label == "true" || label == "True" || label == "1")
    out.good = true;
  else if (!(label == false || label == 0 || label == "false" || label == "False" || label == "0"))
    r.fail("\"label\" is " + label.dump() + "; expected true (a good answer) or false");
  read_answer(tokenizer, chat, r, out);
  return out;
}

std::vector<i32> scored_ids_of_record(const Tokenizer& tokenizer, const ChatTemplate* chat, const Record& r) {
  if (is_list(r, "messages")) {
    const auto messages = parse_messages(r.json("messages"), r.where() + ": \"messages\"");
    return tokenizer.encode(need_template(chat).render(messages, chat_variables(ChatJson::parse(r.json()))),
                            false);
  }
  if (!r.has("completion")) return prompt_ids(tokenizer, r, r.text(r.has("text") ? "text" : "prompt"));
  JudgedAnswer a;
  read_answer(tokenizer, chat, r, a);
  a.prompt.insert(a.prompt.end(), a.answer.begin(), a.answer.end());
  a.prompt.insert(a.prompt.end(), a.tail.begin(), a.tail.end());
  return a.prompt;
}

std::vector<i32> closing_of_record(const Tokenizer& tokenizer, const ChatTemplate* chat, const Record& r) {
  if (!is_list(r, "prompt")) return {};
  const ChatJson answer = ChatJson::array({{{"role", "assistant"}, {"content", "x"}}});
  const Answered a = answered(tokenizer, need_template(chat), r, chat_variables(ChatJson::parse(r.json())),
                              prompt_messages(r), answer, "completion");
  std::vector<i32> out = a.tail;
  if (tokenizer.is_special(a.answer.back())) out.insert(out.begin(), a.answer.back());
  return out;
}

void close_answer(std::vector<i32>& ids, std::span<const i32> closing) {
  const bool ended = !closing.empty() && !ids.empty() && ids.back() == closing.front();
  ids.insert(ids.end(), closing.begin() + (ended ? 1 : 0), closing.end());
}

void fit_answer(std::vector<i32>& prompt, std::vector<i32>& answer, i64 max_length) {
  if (static_cast<i64>(answer.size()) >= max_length) answer.resize(static_cast<std::size_t>(max_length - 1));
  const i64 room = max_length - static_cast<i64>(answer.size());
  if (static_cast<i64>(prompt.size()) > room) prompt.erase(prompt.begin(), prompt.end() - room);
}

}  // namespace redco

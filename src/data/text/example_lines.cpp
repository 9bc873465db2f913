#include "data/text/example_lines.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/jsonl.h"
#include "base/log_once.h"
#include "base/utf8.h"
#include "base/words.h"
#include "data/index/source_files.h"
#include "data/text/example_json.h"
#include "data/text/example_shapes.h"
#include "data/text/field_hints.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxDepth = 64;  // of nested objects and lists

// The value of a named key; null if the settings name none or the line has none.
const Json* find(const Json& j, const std::optional<std::string>& key) {
  if (!key) return nullptr;
  const auto it = j.find(*key);
  return it == j.end() || it->is_null() ? nullptr : &*it;
}

void end_with_eos(const Tokenizer& t, std::vector<i32>& ids) {
  const auto eos = t.special().eos;
  if (eos && (ids.empty() || ids.back() != *eos)) ids.push_back(*eos);
}

// Whether the tokenizer begins texts with the token bos.
bool adds_bos(const Tokenizer& t) {
  const std::vector<i32> ids = t.special().bos ? t.encode("") : std::vector<i32>();
  return !ids.empty() && ids.front() == *t.special().bos;
}

// Ids with the tokenizer's special tokens. A text that begins with the text of bos, such as a rendered chat,
// gets no second one.
std::vector<i32> encode_begun(const Tokenizer& t, std::string_view text) {
  std::vector<i32> ids = t.encode(text);
  const auto bos = t.special().bos;
  if (!bos || ids.size() < 2 || ids[0] != *bos || ids[1] != *bos) return ids;
  const std::vector<i32> plain = t.encode(text, false);
  if (plain.size() < 2 || plain[1] != *bos) ids.erase(ids.begin());
  return ids;
}

TokenizedExample text_example(const Tokenizer& t, const std::string& text) {
  TokenizedExample e;
  e.kind = ExampleKind::text;
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) return e;
  e.ids = encode_begun(t, text);
  end_with_eos(t, e.ids);
  e.in_loss.assign(e.ids.size(), 1);
  return e;
}

TokenizedExample completion_example(const Tokenizer& t, const std::string& prompt,
                                    const std::string& completion) {
  if (completion.empty()) throw ContentsError("the completion is empty");
  TokenizedExample e;
  e.kind = ExampleKind::completion;
  e.reference = completion;
  const std::vector<i32> before = ExampleLines::prompt_ids(t, prompt);
  e.ids = encode_begun(t, prompt + completion);
  if (e.ids.size() <= before.size() || !std::equal(before.begin(), before.end(), e.ids.begin())) {
    e.ids = before;
    const std::vector<i32> after = t.encode(completion, false);
    e.ids.insert(e.ids.end(), after.begin(), after.end());
  }
  end_with_eos(t, e.ids);
  e.prompt_tokens = static_cast<i64>(before.size());
  e.in_loss.assign(e.ids.size(), 1);
  std::fill_n(e.in_loss.begin(), before.size(), std::uint8_t{0});
  return e;
}

// A JSON value for the template, given as JSON or as a text of JSON.
std::string chat_variable(const Json& j, const char* key, bool list) {
  const auto it = j.find(key);
  if (it == j.end() || it->is_null()) return "";
  const Json v = it->is_string() ? Json::parse(it->get_ref<const std::string&>(), nullptr, false) : *it;
  if (list ? !v.is_array() : !v.is_object())
    throw ContentsError("\"{}\" is not {}", key, list ? "a list" : "an object");
  return v.dump();
}

// Messages that a table or a line holds as a text of JSON are read as such.
Json messages_of(const Json& value, const std::string& key) {
  Json list = value.is_string() ? Json::parse(value.get_ref<const std::string&>(), nullptr, false) : value;
  if (!list.is_array())
    throw ContentsError(
        "\"{}\" is not a list but {}. Expected messages: [{{\"role\": \"user\", \"content\": \"...\"}}, ...]",
        key, value.type_name());
  return list;
}

TokenizedExample chat_example(const Tokenizer& t, const ChatTemplate* chat, const Json& j, const Json& list,
                              const std::string& key) {
  if (!chat)
    throw UsageError(
        "[data] the data have conversations (messages), but the model has no chat template. Set "
        "data.chat_template to a Jinja file or to builtin:chat");
  const std::vector<ChatMessage> messages = parse_messages(list.dump(), "\"" + key + "\"");
  const ChatVariables variables = chat_variables(j);
  const auto trained = [](const ChatMessage& m) { return m.is_assistant() && m.train; };
  if (std::none_of(messages.begin(), messages.end(), trained))
    throw ContentsError("no turn of the assistant, so the loss would count no token");
  for (std::size_t i = 0; i < messages.size(); ++i)
    if (trained(messages[i]) && messages[i].is_empty())
      throw ContentsError(
          "\"{}\": message {}, of the assistant, is empty, so the model would learn to answer nothing. Remove "
          "it, or give it \"weight\": 0",
          key, i + 1);
  const TrainingText text = chat->render_training(messages, variables);
  ChatTokens tokens = tokenize_chat(t, text);
  TokenizedExample e;
  e.kind = ExampleKind::chat;
  e.ids = std::move(tokens.ids);
  e.in_loss = std::move(tokens.in_loss);
  if (messages.back().is_assistant()) {
    // The last run of targets is the last turn, which a model would generate.
    e.reference = messages.back().content;
    auto last = std::find(e.in_loss.rbegin(), e.in_loss.rend(), 1);
    e.prompt_tokens = std::find(last, e.in_loss.rend(), 0).base() - e.in_loss.begin();
  }
  return e;
}

// TRL's form of a prompt and a completion that are messages: only the completion is learned.
Json prompt_messages(const Json& prompt, const Json& completion, const ExampleFields& f) {
  Json messages = Json::array();
  if (prompt.is_array()) {
    messages = prompt;
    for (Json& m : messages)
      if (m.is_object()) m["weight"] = 0;
  } else {
    messages.push_back({{"role", "user"}, {"content", as_text(prompt, *f.prompt)}});
  }
  if (completion.is_array())
    messages.insert(messages.end(), completion.begin(), completion.end());
  else
    messages.push_back({{"role", "assistant"}, {"content", as_text(completion, *f.completion)}});
  return messages;
}

AlpacaLine alpaca_line(const Json& j, const ExampleFields& f) {
  AlpacaLine x{as_text(j[*f.instruction], *f.instruction), "", as_text(j[*f.output], *f.output)};
  if (const Json* input = find(j, f.input)) x.input = as_text(*input, *f.input);
  for (const auto& [text, key] : {std::pair(&x.instruction, *f.instruction), std::pair(&x.output, *f.output)})
    if (text->empty()) throw ContentsError("\"{}\" is empty", key);
  x.history = alpaca_history(j);
  return x;
}

// One of two keys that belong together is missing or null.
[[noreturn]] void throw_half(const Json& j, const std::optional<std::string>& have,
                             const std::optional<std::string>& lack) {
  const std::string missing = lack.value_or("prompt");
  std::string hint;
  if (j.contains(missing))
    hint = fmt::format("; \"{}\" is null, expected a text", missing);
  else if (missing == "instruction" && j.contains("input"))
    hint = "; data.fields='{instruction: input, input: ~}' reads \"input\" in its place";
  else
    for (const char* other : {"response", "output", "answer", "chosen", "target", "question", "query"})
      if (j.contains(other) && other != have && hint.empty())
        hint = fmt::format("; data.fields.{}={} reads \"{}\" in its place", missing, other, other);
  throw ContentsError("\"{}\" without \"{}\"{}", have.value_or(""), missing, hint);
}

// The keys of a line of Dolly, which has Alpaca's form with "context" and "response"; nullopt: another form.
std::optional<ExampleFields> dolly_fields(const Json& j, const ExampleFields& fields) {
  static const ExampleFields usual;
  if (!find(j, fields.instruction) || fields.output != usual.output || j.contains(*usual.output) ||
      !find(j, "response"))
    return std::nullopt;
  ExampleFields f = fields;
  f.output = "response";
  if (f.input == usual.input && !j.contains(*usual.input)) f.input = "context";
  log_once(LogLevel::info, "[data] \"instruction\" with \"response\" (Dolly) is read as Alpaca's form");
  return f;
}

TokenizedExample alpaca_example(const Tokenizer& t, const ChatTemplate* chat, const Json& j,
                                const AlpacaLine& x) {
  if (chat) return chat_example(t, chat, j, alpaca_messages(j, x), "messages");
  return completion_example(t, alpaca_prompt(j, x), x.output);
}

}  // namespace

ChatVariables chat_variables(const Json& line) {
  ChatVariables v;
  v.tools = chat_variable(line, "tools", true);
  v.more = chat_variable(line, "chat_template_kwargs", false);
  return v;
}

Json parse_example_line(std::string_view line) {
  std::vector<std::string> keys;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kMaxDepth) throw ContentsError("nested more than {} deep", kMaxDepth);
    if (event == Json::parse_event_t::key && depth == 1) {
      const auto& key = value.get_ref<const std::string&>();
      if (std::find(keys.begin(), keys.end(), key) != keys.end())
        throw ContentsError("the key \"{}\" is given twice", excerpt(key));
      keys.push_back(key);
    }
    return true;
  };
  Json j;
  try {
    try {
      j = Json::parse(line, watch);
    } catch (const Json::exception&) {
      if (line.find("NaN") == line.npos && line.find("Infinity") == line.npos) throw;
      keys.clear();
      j = Json::parse(without_python_numbers(line), watch);
    }
  } catch (const Json::exception& e) {
    if (const std::size_t bad = find_invalid_utf8(line); bad != std::string_view::npos)
      throw ContentsError(
          "byte {} (0x{:02X}) is not UTF-8; convert the file, e.g. with iconv -f latin1 -t utf-8", bad + 1,
          static_cast<unsigned char>(line[bad]));
    std::string_view why = e.what();
    if (const auto at = why.find("column "); at != std::string_view::npos) why.remove_prefix(at);
    const std::string_view begin = line.substr(std::min(line.find_first_not_of(" \t\r"), line.size()));
    if (begin.starts_with("[") || begin == "{")
      throw ContentsError(
          "not a JSON object in one line: the file holds {} over several lines. Set data.format: json, or give "
          "the file the ending .json",
          begin == "{" ? "an object" : "an array");
    throw ContentsError("not JSON: {}", excerpt(why));
  }
  if (j.is_array() && (j.empty() || j[0].is_object()))
    throw ContentsError(
        "not an object of keys and values but an array. For a file of one array of objects set data.format: "
        "json, or give the file the ending .json");
  if (!j.is_object()) throw ContentsError("not an object of keys and values but {}", j.type_name());
  return j;
}

std::vector<i32> ExampleLines::prompt_ids(const Tokenizer& t, std::string_view prompt) {
  std::vector<i32> ids = encode_begun(t, prompt);
  const auto eos = t.special().eos;
  if (eos && !ids.empty() && ids.back() == *eos) {
    const std::vector<i32> plain = t.encode(prompt, false);
    if (plain.empty() || plain.back() != *eos) ids.pop_back();
  }
  return ids;
}

TokenizedExample ExampleLines::read(std::string_view line) const {
  const Json j = parse_example_line(line);
  const std::optional<ExampleFields> dolly = dolly_fields(j, fields_);
  const ExampleFields& f = dolly ? *dolly : fields_;
  const Json *text = find(j, f.text), *messages = find(j, f.messages),
             *conversations = find(j, f.conversations);
  // Two keys that belong together. Only both together are a form: the others are then ignored.
  struct Both {
    const std::optional<std::string>&first_key, &second_key;
    const Json *first, *second;
    explicit operator bool() const { return first && second; }
  };
  const Both completion{f.prompt, f.completion, find(j, f.prompt), find(j, f.completion)};
  const Both alpaca{f.instruction, f.output, find(j, f.instruction), find(j, f.output)};
  // The forms that the line has: a key, and the settings that turn the form off.
  struct Form {
    std::string key, off;
  };
  std::vector<Form> there;
  if (text) there.push_back({*f.text, "data.fields.text=~"});
  if (messages) there.push_back({*f.messages, "data.fields.messages=~"});
  if (completion) there.push_back({*f.prompt, "data.fields.prompt=~ data.fields.completion=~"});
  if (alpaca) there.push_back({*f.instruction, "data.fields.instruction=~ data.fields.output=~"});
  if (conversations) there.push_back({*f.conversations, "data.fields.conversations=~"});
  if (there.size() > 1)
    throw ContentsError("the line has both \"{0}\" and \"{1}\". {2} selects \"{1}\", {3} selects \"{0}\"",
                        there[0].key, there[1].key, there[0].off, there[1].off);
  if (text && *f.text == "text" && j.contains("parent_id") && j.contains("role"))
    throw ContentsError(
        "one message of a conversation (\"parent_id\", \"role\"), so the model would learn single messages. Join "
        "the messages to conversations (docs/data.md), or set data.template='{{text}}' to train on single ones");
  TokenizedExample e;
  if (text) {
    e = text_example(tokenizer_, as_text(*text, *f.text));
  } else if (messages) {
    Json list = messages_of(*messages, *f.messages);
    if (!list.empty() && list[0].is_object() && list[0].contains("from") && !list[0].contains("role"))
      list = sharegpt_messages(j, list, *f.messages);
    e = chat_example(tokenizer_, chat_, j, list, *f.messages);
  } else if (conversations) {
    const Json turns = messages_of(*conversations, *f.conversations);
    e = chat_example(tokenizer_, chat_, j, sharegpt_messages(j, turns, *f.conversations), *f.conversations);
  } else if (completion && (completion.first->is_array() || completion.second->is_array())) {
    e = chat_example(tokenizer_, chat_, j, prompt_messages(*completion.first, *completion.second, f),
                     *f.completion);
  } else if (completion) {
    e = completion_example(tokenizer_, as_text(*completion.first, *f.prompt),
                           as_text(*completion.second, *f.completion));
  } else if (alpaca) {
    e = alpaca_example(tokenizer_, chat_, j, alpaca_line(j, f));
  } else {
    for (const Both& both : {completion, alpaca})
      if (both.first || both.second)
        throw_half(j, both.first ? both.first_key : both.second_key,
                   both.first ? both.second_key : both.first_key);
    std::vector<std::string> keys, expected;
    for (const auto& [key, value] : j.items()) keys.push_back(key);
    for (const auto& key : {f.text, f.completion ? f.prompt : std::nullopt, f.messages,
                            f.output ? f.instruction : std::nullopt, f.conversations})
      if (key) {
        if (const auto it = j.find(*key); it != j.end() && it->is_null()) {
          if (key == f.text) return e;
          throw ContentsError("\"{}\" is null", *key);
        }
        expected.push_back("\"" + *key + "\"");
      }
    throw ContentsError("no {}; {}", fmt::join(expected, " or "), lm_fields_hint(keys, chat_ != nullptr));
  }
  if (e.ids.empty()) return e;
  if (std::find(e.in_loss.begin() + 1, e.in_loss.end(), 1) == e.in_loss.end())
    throw ContentsError("the loss counts none of its {}", counted(e.ids.size(), "token"));
  if (const Json* id = find(j, fields_.id)) e.id = id->dump();
  return e;
}

std::string ExampleLines::fingerprint() const {
  Hasher h;
  put(h, kExampleVersion);
  put(h, tokenizer_.fingerprint());
  put(h, static_cast<u64>(tokenizer_.special().eos.value_or(-1)));
  // Rendered chats lose their second bos; examples of other tokenizers are unchanged.
  if (adds_bos(tokenizer_)) put(h, u64{2});
  put(h, chat_ ? chat_->source() : "");
  // Turns whose reasoning such a template omits do not count in the loss.
  if (chat_ && (chat_->source().find("think") != std::string::npos ||
                chat_->source().find("reasoning") != std::string::npos))
    put(h, u64{3});
  for (const auto& key : {fields_.text, fields_.prompt, fields_.completion, fields_.messages, fields_.id})
    put(h, key ? "=" + *key : "");
  // These keys are newer than runs that can resume: as long as they have their defaults, hashes are
  // unchanged.
  ExampleFields usual;
  usual.text = fields_.text, usual.prompt = fields_.prompt;
  usual.completion = fields_.completion, usual.messages = fields_.messages;
  const auto newer = [](const ExampleFields& f) {
    return std::vector{f.instruction, f.input, f.output, f.conversations};
  };
  if (newer(fields_) != newer(usual.without_shared()))
    for (const auto& key : newer(fields_)) put(h, key ? "=" + *key : "");
  return h.digest128().hex();
}

void note_end_token(const Tokenizer& tokenizer, const std::string& what) {
  if (const auto eos = tokenizer.special().eos)
    log_once(LogLevel::info, fmt::format("[data] {} end with the tokenizer's end token {} (id {})", what,
                                         tokenizer.id_to_token(*eos).value_or(""), *eos));
  else
    log_once(LogLevel::info, fmt::format("[data] {} have no end token: tokenizer {} names none "
                                         "(tokenizer_config.json: eos_token)",
                                         what, tokenizer.name()));
}

}  // namespace redco

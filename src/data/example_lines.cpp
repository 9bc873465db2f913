#include "data/example_lines.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "base/words.h"
#include "data/example_json.h"
#include "data/source_files.h"

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

const std::string& text_of(const Json& v, const std::string& key) {
  if (!v.is_string()) throw ContentsError("\"{}\" is not a text but {}", key, v.type_name());
  return v.get_ref<const std::string&>();
}

void end_with_eos(const Tokenizer& t, std::vector<i32>& ids) {
  const auto eos = t.special().eos;
  if (eos && (ids.empty() || ids.back() != *eos)) ids.push_back(*eos);
}

TokenizedExample text_example(const Tokenizer& t, const std::string& text) {
  if (text.empty()) throw ContentsError("the text is empty");
  TokenizedExample e;
  e.kind = ExampleKind::text;
  e.ids = t.encode(text);
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
  e.ids = t.encode(prompt + completion);
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
std::string variable(const Json& j, const char* key, bool list) {
  const auto it = j.find(key);
  if (it == j.end() || it->is_null()) return "";
  const Json v = it->is_string() ? Json::parse(it->get_ref<const std::string&>(), nullptr, false) : *it;
  if (list ? !v.is_array() : !v.is_object())
    throw ContentsError("\"{}\" is not {}", key, list ? "a list" : "an object");
  return v.dump();
}

TokenizedExample chat_example(const Tokenizer& t, const ChatTemplate* chat, const Json& j, const Json& list,
                              const std::string& key) {
  if (!chat)
    throw UsageError(
        "[data] the data have conversations (messages), but the model has no chat template. Set "
        "data.chat_template to a Jinja file or to builtin:chat");
  if (!list.is_array()) throw ContentsError("\"{}\" is not a list but {}", key, list.type_name());
  const std::vector<ChatMessage> messages = parse_messages(list.dump(), "\"" + key + "\"");
  ChatVariables variables;
  variables.tools = variable(j, "tools", true);
  variables.more = variable(j, "chat_template_kwargs", false);
  const auto trained = [](const ChatMessage& m) { return m.role == "assistant" && m.train; };
  if (std::none_of(messages.begin(), messages.end(), trained))
    throw ContentsError("no turn of the assistant, so the loss would count no token");
  const TrainingText text = chat->render_training(messages, variables);
  ChatTokens tokens = tokenize_chat(t, text);
  TokenizedExample e;
  e.kind = ExampleKind::chat;
  e.ids = std::move(tokens.ids);
  e.in_loss = std::move(tokens.in_loss);
  if (messages.back().role == "assistant") {
    // The last run of targets is the last turn, which a model would generate.
    e.reference = messages.back().content;
    auto last = std::find(e.in_loss.rbegin(), e.in_loss.rend(), 1);
    e.prompt_tokens = std::find(last, e.in_loss.rend(), 0).base() - e.in_loss.begin();
  }
  return e;
}

}  // namespace

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
    j = Json::parse(line, watch);
  } catch (const Json::exception& e) {
    if (const std::size_t bad = find_invalid_utf8(line); bad != std::string_view::npos)
      throw ContentsError(
          "byte {} (0x{:02X}) is not UTF-8; convert the file, e.g. with iconv -f latin1 -t utf-8", bad + 1,
          static_cast<unsigned char>(line[bad]));
    std::string_view why = e.what();
    if (const auto at = why.find("column "); at != std::string_view::npos) why.remove_prefix(at);
    throw ContentsError("not JSON: {}", excerpt(why));
  }
  if (!j.is_object()) throw ContentsError("not an object of keys and values but {}", j.type_name());
  return j;
}

std::vector<i32> ExampleLines::prompt_ids(const Tokenizer& t, std::string_view prompt) {
  std::vector<i32> ids = t.encode(prompt);
  const auto eos = t.special().eos;
  if (eos && !ids.empty() && ids.back() == *eos) {
    const std::vector<i32> plain = t.encode(prompt, false);
    if (plain.empty() || plain.back() != *eos) ids.pop_back();
  }
  return ids;
}

TokenizedExample ExampleLines::read(std::string_view line) const {
  const Json j = parse_example_line(line);
  const Json *text = find(j, fields_.text), *prompt = find(j, fields_.prompt),
             *completion = find(j, fields_.completion), *messages = find(j, fields_.messages);
  std::vector<std::string> there;
  if (text) there.push_back(*fields_.text);
  if (messages) there.push_back(*fields_.messages);
  if (prompt && completion) there.push_back(*fields_.prompt);
  if (there.size() > 1)
    throw ContentsError("the line has both \"{}\" and \"{}\". Select one: set the other to ~ in data.fields",
                        there[0], there[1]);
  TokenizedExample e;
  if (text) {
    e = text_example(tokenizer_, text_of(*text, *fields_.text));
  } else if (messages) {
    e = chat_example(tokenizer_, chat_, j, *messages, *fields_.messages);
  } else if (prompt && completion) {
    e = completion_example(tokenizer_, text_of(*prompt, *fields_.prompt),
                           text_of(*completion, *fields_.completion));
  } else if (prompt || completion) {
    throw ContentsError("\"{}\" without \"{}\"", prompt ? *fields_.prompt : *fields_.completion,
                        (prompt ? fields_.completion : fields_.prompt).value_or("prompt"));
  } else {
    std::vector<std::string> keys;
    for (const auto& [key, value] : j.items())
      if (keys.size() < 8) keys.push_back(key);
    std::string expected;
    for (const auto& key :
         {fields_.text, fields_.completion ? fields_.prompt : std::nullopt, fields_.messages})
      if (key) expected += fmt::format("{}\"{}\"", expected.empty() ? "" : " or ", *key);
    throw ContentsError("no {}; its keys are {} (data.fields renames them)", expected,
                        keys.empty() ? "none" : excerpt(fmt::format("{}", fmt::join(keys, ", "))));
  }
  if (std::find(e.in_loss.begin() + !e.in_loss.empty(), e.in_loss.end(), 1) == e.in_loss.end())
    throw ContentsError("the loss counts none of its {} token{}", e.ids.size(), e.ids.size() == 1 ? "" : "s");
  if (const Json* id = find(j, fields_.id)) e.id = id->dump();
  return e;
}

std::string ExampleLines::fingerprint() const {
  Hasher h;
  put(h, kExampleVersion);
  put(h, tokenizer_.fingerprint());
  put(h, static_cast<u64>(tokenizer_.special().eos.value_or(-1)));
  put(h, chat_ ? chat_->source() : "");
  for (const auto& key : {fields_.text, fields_.prompt, fields_.completion, fields_.messages, fields_.id})
    put(h, key ? "=" + *key : "");
  return h.digest128().hex();
}

}  // namespace redco

#include "chat/chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/log_once.h"
#include "base/utf8.h"
#include "chat/reasoning.h"
#include "chat/turn_finder.h"
#include "jinja/ops.h"
#include "jinja/template.h"
#include "jinja/text.h"

namespace redco {
namespace {

using jinja::DictObject;
using jinja::Kind;
using jinja::Value;

constexpr i64 kMaxConfigBytes = 64 << 20;

// --- Files ---

nlohmann::json read_object(const std::string& path) {
  nlohmann::json j = nlohmann::json::parse(read_file(path, kMaxConfigBytes), nullptr, false);
  if (!j.is_object()) throw ContentsError("{}: expected a JSON object", path);
  return j;
}

// The text of a special token, which is a string or an object with a content.
std::optional<std::string> token_text(const nlohmann::json& v) {
  if (v.is_string()) return v.get<std::string>();
  if (v.is_object() && v.contains("content") && v["content"].is_string())
    return v["content"].get<std::string>();
  return std::nullopt;
}

using Special = std::vector<std::pair<std::string, std::string>>;

void read_special(const nlohmann::json& config, Special& special) {
  auto give = [&](const std::string& name, const nlohmann::json& v) {
    for (const auto& s : special)
      if (s.first == name) return;
    if (const auto text = token_text(v)) special.emplace_back(name, *text);
  };
  for (const char* name :
       {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"})
    if (config.contains(name)) give(name, config[name]);
  if (config.contains("extra_special_tokens") && config["extra_special_tokens"].is_object())
    for (const auto& [name, v] : config["extra_special_tokens"].items()) give(name, v);
}

// --- Messages ---

Value message_value(const ChatMessage& m) {
  auto d = std::make_shared<DictObject>();
  if (m.json.empty()) {
    d->set("role", m.role);
    d->set("content", m.content);
    return Value::dict(std::move(d));
  }
  const Value whole = jinja::from_json(m.json, "a message");
  if (!whole.is(Kind::dict)) throw ContentsError("a message: expected a JSON object");
  // As in transformers, null fields are missing, and the reasoning has several names.
  const Value* reasoning = nullptr;
  for (std::string_view name : {"reasoning_content", "thinking", "reasoning"}) {
    const Value* v = whole.map().find(name);
    if (!reasoning && v && !v->is(Kind::none)) reasoning = v;
  }
  if (reasoning) d->set("thinking", *reasoning);
  for (const auto& [key, value] : whole.map().entries)
    if (!value.is(Kind::none)) d->set(key, value);
  if (reasoning) d->set("reasoning_content", *reasoning);
  return Value::dict(std::move(d));
}

// Whether a message has a null content or none, such as one with tool calls only.
bool lacks_content(const ChatMessage& m) {
  if (m.json.empty()) return false;
  const nlohmann::json j = nlohmann::json::parse(m.json, nullptr, false);
  return j.is_object() && (!j.contains("content") || j["content"].is_null());
}

std::size_t size_of(std::span<const ChatMessage> messages) {
  std::size_t n = 0;
  for (const ChatMessage& m : messages) n += 200 + m.role.size() + m.content.size() + m.json.size();
  return n;
}

jinja::Rendered run(const jinja::Template& t, const std::string& where, const Special& special,
                    std::span<const ChatMessage> messages, const ChatVariables& v) {
  for (const ChatMessage& m : messages)
    if (find_invalid_utf8(m.role) != std::string::npos || find_invalid_utf8(m.content) != std::string::npos)
      throw ContentsError("{}: a message is not UTF-8", where);
  jinja::Budget budget =
      jinja::budget_for(size_of(messages) + v.tools.size() + v.documents.size() + v.more.size());
  jinja::BudgetScope scope(&budget);
  try {
    std::vector<std::pair<std::string, Value>> variables;
    for (const auto& [name, text] : special) variables.emplace_back(name, text);
    jinja::Values all;
    for (const ChatMessage& m : messages) all.push_back(message_value(m));
    variables.emplace_back("messages", Value::list(std::move(all)));
    auto list = [&](const char* name, const std::string& json) {
      Value value = Value::none();
      if (!json.empty()) value = jinja::from_json(json, name);
      if (!value.is(Kind::none) && !value.is(Kind::list))
        throw ContentsError("{}: expected a JSON array", name);
      variables.emplace_back(name, std::move(value));
    };
    list("tools", v.tools);
    list("documents", v.documents);
    variables.emplace_back("add_generation_prompt", v.add_generation_prompt);
    if (!v.more.empty()) {
      const Value more = jinja::from_json(v.more, "the template's variables");
      if (!more.is(Kind::dict)) throw ContentsError("the template's variables: expected a JSON object");
      for (const auto& [name, value] : more.map().entries) variables.emplace_back(name.text(), value);
    }
    return t.render(std::move(variables));
  } catch (const jinja::Failure& e) {
    for (std::size_t i = 0; i < messages.size(); ++i)
      if (lacks_content(messages[i]))
        throw ContentsError(
            "{}: {}. Message {} has no content, and the template may need one: give it \"content\": \"\"",
            where, e.what(), i + 1);
    throw ContentsError("{}: {}", where, e.what());
  }
}

}  // namespace

// --- Loading ---

ChatTemplate ChatTemplate::parse(std::string_view text, const std::string& where, Special special) {
  ChatTemplate t;
  t.where_ = where;
  t.source_ = std::string(text);
  t.default_ = std::make_shared<const jinja::Template>(jinja::Template::parse(text, where));
  t.special_ = std::move(special);
  return t;
}

std::optional<ChatTemplate> ChatTemplate::load(const std::string& folder) {
  Special special;
  nlohmann::json config = nlohmann::json::object();
  const std::string config_path = join_path(folder, "tokenizer_config.json");
  if (exists(config_path)) config = read_object(config_path);
  read_special(config, special);
  if (const std::string path = join_path(folder, "special_tokens_map.json"); exists(path))
    read_special(read_object(path), special);

  auto compile = [](const std::string& text, const std::string& where) {
    return std::make_shared<const jinja::Template>(jinja::Template::parse(text, where));
  };
  ChatTemplate t;
  t.special_ = std::move(special);
  const std::string file = join_path(folder, "chat_template.jinja");
  if (exists(file)) {
    t.where_ = file;
    t.source_ = read_file(file, kMaxConfigBytes);
    t.default_ = compile(t.source_, file);
    const std::string tools = join_path(folder, "additional_chat_templates/tool_use.jinja");
    if (exists(tools)) t.tools_ = compile(read_file(tools, kMaxConfigBytes), tools);
    return t;
  }
  auto it = config.find("chat_template");
  if (it == config.end() || it->is_null()) return std::nullopt;
  t.where_ = config_path + ": chat_template";
  if (it->is_string()) {
    t.source_ = it->get<std::string>();
    t.default_ = compile(t.source_, t.where_);
    return t;
  }
  const char* expected = "expected a text, or a list of objects with name and template";
  if (!it->is_array()) throw ContentsError("{}: {}", t.where_, expected);
  for (const auto& one : *it) {
    if (!one.is_object() || !one.contains("name") || !one["name"].is_string() || !one.contains("template") ||
        !one["template"].is_string())
      throw ContentsError("{}: {}", t.where_, expected);
    const std::string name = one["name"], text = one["template"];
    if (name == "default") {
      t.source_ = text;
      t.default_ = compile(text, t.where_ + "[default]");
    } else if (name == "tool_use") {
      t.tools_ = compile(text, t.where_ + "[tool_use]");
    }
  }
  if (!t.default_) throw ContentsError("{}: no template is named default; add one", t.where_);
  return t;
}

void ChatTemplate::add_special(const Special& special) {
  for (const auto& s : special)
    if (std::ranges::none_of(special_, [&](const auto& have) { return have.first == s.first; }))
      special_.push_back(s);
}

const jinja::Template& ChatTemplate::chosen(const ChatVariables& v) const {
  return tools_ && !v.tools.empty() ? *tools_ : *default_;
}

// --- Rendering ---

namespace {

bool has_calls(const ChatMessage& m) {
  if (m.json.find("\"tool_calls\"") == std::string::npos) return false;
  const nlohmann::json j = nlohmann::json::parse(m.json, nullptr, false);
  return j.is_object() && j.contains("tool_calls") && j["tool_calls"].is_array() && !j["tool_calls"].empty();
}

// A template that names neither a variable nor whole messages has no place for it.
bool names(const std::string& source, std::string_view variable) {
  return source.find(variable) != std::string::npos || source.find("tojson") != std::string::npos;
}

void note_dropped(const std::string& source, bool has_tool_template, const std::string& where,
                  std::span<const ChatMessage> messages, const ChatVariables& v) {
  if (has_tool_template) return;
  const auto note = [&](const char* what) {
    log_once(LogLevel::warn,
             fmt::format("[chat] {}: the template has no place for {}, so the model does not see "
                         "them. data.chat_template names another template",
                         where, what));
  };
  if (!v.tools.empty() && v.tools != "[]" && !names(source, "tools")) note("tools");
  if (std::ranges::any_of(messages, has_calls) && !names(source, "tool_calls")) note("tool calls");
}

}  // namespace

std::string ChatTemplate::render(std::span<const ChatMessage> messages, const ChatVariables& v) const {
  note_dropped(source_, tools_ != nullptr, where_, messages, v);
  return run(chosen(v), where_, special_, messages, v).text;
}

TrainingText ChatTemplate::render_training(std::span<const ChatMessage> messages,
                                           const ChatVariables& variables) const {
  ChatVariables v = variables;
  v.add_generation_prompt = false;
  const jinja::Template& t = chosen(v);
  note_dropped(source_, tools_ != nullptr, where_, messages, v);
  for (std::size_t i = 0; i < messages.size() && !tools_; ++i) {
    const ChatMessage& m = messages[i];
    if (m.is_assistant() && m.train && has_calls(m) && jinja::strip(m.content).empty() &&
        !names(source_, "tool_calls"))
      throw ContentsError(
          "{}: the template has no place for tool calls, so message {}, which has nothing else, would teach the "
          "model to answer nothing. Set data.chat_template to a template with tool calls, or give the message "
          "\"weight\": 0",
          where_, i + 1);
  }
  jinja::Rendered rendered = run(t, where_, special_, messages, v);
  TrainingText out{std::move(rendered.text), {}};
  // Whether message i is in the loss. A turn whose reasoning the template omits would teach the model to
  // answer without reasoning.
  const auto counts = [&](std::size_t i) {
    if (!messages[i].train) return false;
    const auto marked = with_reasoning(messages[i], std::string(kTurnMarker));
    if (!marked) return true;
    std::vector<ChatMessage> all(messages.begin(), messages.end());
    all[i] = *marked;
    const auto kept = [&](std::size_t n) {
      return run(t, where_, special_, std::span(all).first(n), v).text.find(kTurnMarker) != std::string::npos;
    };
    if (kept(all.size())) return true;
    if (!kept(i + 1))
      throw ContentsError(
          "{}: the template omits the reasoning of message {}, so the model would learn to answer without it. Set "
          "data.chat_template to a template that keeps it, remove the reasoning from the data, or give the message "
          "\"weight\": 0",
          where_, i + 1);
    log_once(
        LogLevel::warn,
        fmt::format("[chat] {}: the template omits the reasoning of earlier turns, so these turns are not in "
                    "the loss. To train on each turn, give each a line that ends with it",
                    where_));
    return false;
  };
  if (t.has_generation()) {
    // One block per assistant turn, or one per turn of weight 1 if the template reads weights.
    std::vector<bool> train;
    for (std::size_t i = 0; i < messages.size(); ++i)
      if (messages[i].is_assistant()) train.push_back(counts(i));
    const auto counted = static_cast<std::size_t>(std::count(train.begin(), train.end(), true));
    const bool all = counted == train.size() || counted == rendered.generation.size();
    if (!all && train.size() != rendered.generation.size())
      throw ContentsError(
          "{}: {} assistant turns, some of weight 0, but {} {{% generation %}} blocks: can't match turns and "
          "blocks",
          where_, train.size(), rendered.generation.size());
    for (std::size_t i = 0; i < rendered.generation.size(); ++i)
      if ((all || train[i]) && rendered.generation[i].first < rendered.generation[i].second)
        out.spans.push_back({rendered.generation[i].first, rendered.generation[i].second});
    return out;
  }
  TurnFinder finder(messages, out.text, [&](std::span<const ChatMessage> part, bool prompt) {
    v.add_generation_prompt = prompt;
    return run(t, where_, special_, part, v).text;
  });
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (!messages[i].is_assistant() || !counts(i)) continue;
    const auto span = finder.find(i);
    if (!span || (!out.spans.empty() && span->begin < out.spans.back().end))
      throw ContentsError(
          "{}: can't find the assistant's message {} in the text: {}; put {{% generation %}} blocks around "
          "the assistant's text in the template",
          where_, i + 1, span ? "it overlaps the previous turn" : finder.why());
    if (span->begin < span->end) out.spans.push_back(*span);
  }
  return out;
}

// --- Tokens ---

namespace {

// The first end of a token at or after byte `at` of the text with these ids.
struct TokenEnd {
  std::size_t tokens;  // number of tokens up to it
  bool exact;          // whether it is exactly at `at`
};

// Usually the ids of a text prefix that ends with a token are a prefix of the ids. A prefix that splits a
// token has other ids.
TokenEnd token_end(const Tokenizer& tokenizer, const std::string& text, std::size_t at,
                   const std::vector<i32>& ids) {
  constexpr int kLongest = 64;  // characters after `at` that a token may have
  const char *p = text.data() + at, *end = text.data() + text.size();
  std::size_t common = 0;
  for (int i = 0; i < kLongest; ++i) {
    const auto to = static_cast<std::size_t>(p - text.data());
    const auto part = tokenizer.encode(std::string_view(text).substr(0, to), false);
    const auto same = static_cast<std::size_t>(
        std::mismatch(part.begin(), part.end(), ids.begin(), ids.end()).first - part.begin());
    if (same == part.size()) return {same, i == 0};
    if (i == 0) common = same;
    if (p == end) break;
    next_code_point(p);
  }
  return {common + 1, false};
}

}  // namespace

ChatTokens tokenize_chat(const Tokenizer& tokenizer, const TrainingText& chat) {
  ChatTokens out;
  out.ids = tokenizer.encode(chat.text, false);
  out.in_loss.assign(out.ids.size(), 0);
  for (const TextSpan& s : chat.spans) {
    const TokenEnd before = token_end(tokenizer, chat.text, s.begin, out.ids);
    const std::size_t begin = before.tokens - (before.exact ? 0 : 1);
    const std::size_t end = std::min(token_end(tokenizer, chat.text, s.end, out.ids).tokens, out.ids.size());
    for (std::size_t i = begin; i < end; ++i) out.in_loss[i] = 1;
  }
  return out;
}

}  // namespace redco

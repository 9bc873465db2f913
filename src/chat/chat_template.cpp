#include "chat/chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/log_once.h"
#include "base/utf8.h"
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

namespace {

// Finds the assistant's turns in the text of a conversation by rendering prefixes and variants of it.
class TurnFinder {
 public:
  using Render = std::function<std::string(std::span<const ChatMessage>, bool generation_prompt)>;
  TurnFinder(std::span<const ChatMessage> messages, const std::string& text, Render render)
      : messages_(messages), text_(text), render_(std::move(render)) {}

  // The span of message i; nullopt if it is not found, for the reason why().
  std::optional<TextSpan> find(std::size_t i) {
    why_.clear();
    const auto begin = find_begin(i);
    if (!begin) return std::nullopt;
    const auto end = find_end(i, *begin);
    if (!end || *end < *begin) return std::nullopt;
    return TextSpan{*begin, *end};
  }
  const std::string& why() const { return why_; }

 private:
  // A text that occurs in no conversation and that templates don't change.
  static constexpr std::string_view kMarker = "redcoturn7f3a91c5";

  std::optional<std::string> tried(std::span<const ChatMessage> messages, bool generation_prompt) {
    try {
      return render_(messages, generation_prompt);
    } catch (const ContentsError& e) {
      why_ = e.what();
      return std::nullopt;
    }
  }

  std::string_view text_from(std::size_t begin, std::size_t end) const {
    return std::string_view(text_).substr(begin, end - begin);
  }

  // A turn starts after the generation prompt if the conversation before the turn, with the prompt, is a
  // prefix of the whole text.
  std::optional<std::size_t> find_begin(std::size_t i) {
    const auto prompted = tried(messages_.first(i), true);
    if (prompted && text_.starts_with(*prompted)) return prompted->size();
    // Some templates write other white space before the prompt than before a turn. Some prompts start the
    // model's reasoning, which earlier turns don't have. Then use the part of the prompt that the text has,
    // up to a tag or a line break.
    const auto before = prompted && i > 0 ? tried(messages_.first(i), false) : std::nullopt;
    if (before && text_.starts_with(*before) && prompted->starts_with(*before)) {
      auto at = static_cast<std::size_t>(
          std::mismatch(prompted->begin(), prompted->end(), text_.begin(), text_.end()).first -
          prompted->begin());
      const std::string_view rest = jinja::strip(std::string_view(*prompted).substr(at));
      const std::string_view turn = jinja::strip_left(text_from(at, text_.size()));
      if (!rest.empty() && turn.starts_with(rest)) return text_.size() - turn.size() + rest.size();
      while (at > before->size() && text_[at - 1] != '\n' && text_[at - 1] != '>') --at;
      // What the text has from there to the content is a header of the turn that the prompt writes otherwise.
      if (const auto content = find_content(i);
          content && content->begin > at && !has_reasoning(messages_[i]))
        if (!jinja::strip(text_from(at, content->begin)).empty()) return content->begin;
      return at;
    }
    if (const auto content = find_content(i)) return content->begin;
    if (prompted) why_ += "the text before it depends on later messages";
    return std::nullopt;
  }

  std::optional<std::size_t> find_end(std::size_t i, std::size_t begin) {
    const auto with = tried(messages_.first(i + 1), false);
    if (with && text_.starts_with(*with) && with->size() >= begin) {
      const std::string content(jinja::strip(messages_[i].content));
      const std::size_t at = content.empty() ? std::string::npos : text_.rfind(content, with->size());
      std::size_t content_end = begin;
      if (at != std::string::npos && at >= begin && at + content.size() <= with->size())
        content_end = at + content.size();
      // A model doesn't generate white space after an end-of-turn token. If only white space follows the
      // content, the white space is the end of the turn.
      const std::string_view token = jinja::strip_right(text_from(content_end, with->size()));
      return token.empty() ? with->size() : content_end + token.size();
    }
    // The turn's text depends on later messages. So take the end-of-turn token that it has as the last turn,
    // and search for it before the next turn's content.
    const auto content = find_content(i);
    const std::size_t from = content ? std::max(content->end, begin) : begin;
    std::size_t limit = text_.size();
    if (i + 1 < messages_.size())
      if (const auto next = find_content(i + 1)) limit = next->begin;
    if (with) {
      const std::string_view token = last_token(*with);
      const std::size_t at = token.empty() ? std::string::npos : text_.rfind(token, limit - token.size());
      if (limit >= from + token.size() && at != std::string::npos && at >= from) return at + token.size();
    }
    if (content) {  // the end-of-turn tag after it, if there is one
      const std::size_t close = text_[from] == '<' ? text_.find('>', from) : std::string::npos;
      return close == std::string::npos ? from : close + 1;
    }
    if (why_.empty()) why_ = "its text depends on later messages, and its content is not a plain string";
    return std::nullopt;
  }

  // The tag, such as "<|im_end|>", at the end of a text, ignoring white space; "" if the text ends otherwise.
  static std::string_view last_token(std::string_view text) {
    text = jinja::strip_right(text);
    const std::size_t open = text.rfind('<');
    return text.ends_with('>') && open != text.npos ? text.substr(open) : std::string_view();
  }

  // Finds the content of a message by rendering the conversation with a marker in its place.
  std::optional<TextSpan> find_content(std::size_t i) {
    std::vector<ChatMessage> marked(messages_.begin(), messages_.end());
    if (!mark(marked[i])) return std::nullopt;
    const auto whole = tried(marked, false);
    if (!whole) return std::nullopt;
    const std::size_t at = whole->find(kMarker);
    if (at == std::string::npos || whole->find(kMarker, at + 1) != std::string::npos) {
      why_ = "the template doesn't write its content exactly once and unchanged";
      return std::nullopt;
    }
    const std::string_view head = std::string_view(*whole).substr(0, at);
    const std::string_view tail = std::string_view(*whole).substr(at + kMarker.size());
    if (!text_.starts_with(head) || !text_.ends_with(tail) || head.size() + tail.size() > text_.size()) {
      why_ = "the text around it depends on its content";
      return std::nullopt;
    }
    return TextSpan{head.size(), text_.size() - tail.size()};
  }

  static bool has_reasoning(const ChatMessage& m) {
    return m.json.find("reasoning") != std::string::npos || m.json.find("thinking") != std::string::npos;
  }

  // Replaces the message's content by the marker; false if it has no content.
  static bool mark(ChatMessage& m) {
    if (m.json.empty()) {
      m.content = kMarker;
      return true;
    }
    nlohmann::ordered_json j = nlohmann::ordered_json::parse(m.json, nullptr, false);
    if (!j.is_object() || !j.contains("content")) return false;
    if (j["content"].is_string())
      j["content"] = kMarker;
    else if (j["content"].is_array())
      j["content"] = {{{"type", "text"}, {"text", kMarker}}};
    else
      return false;
    m.json = j.dump();
    return true;
  }

  std::span<const ChatMessage> messages_;
  const std::string& text_;
  Render render_;
  std::string why_;
};

}  // namespace

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
  if (t.has_generation()) {
    // One block per assistant turn, or one per turn of weight 1 if the template reads weights.
    std::vector<bool> train;
    for (const ChatMessage& m : messages)
      if (m.is_assistant()) train.push_back(m.train);
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
    if (!messages[i].is_assistant() || !messages[i].train) continue;
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

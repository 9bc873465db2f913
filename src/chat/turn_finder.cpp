#include "chat/turn_finder.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "jinja/text.h"

namespace redco {

namespace {

// The tag, such as "<|im_end|>", at the end of a text, ignoring white space; "" if the text ends otherwise.
std::string_view last_token(std::string_view text) {
  text = jinja::strip_right(text);
  const std::size_t open = text.rfind('<');
  return text.ends_with('>') && open != text.npos ? text.substr(open) : std::string_view();
}

bool has_reasoning(const ChatMessage& m) {
  return m.json.find("reasoning") != std::string::npos || m.json.find("thinking") != std::string::npos;
}

// Replaces the message's content by the marker; false if it has no content.
bool mark(ChatMessage& m) {
  if (m.json.empty()) {
    m.content = kTurnMarker;
    return true;
  }
  nlohmann::ordered_json j = nlohmann::ordered_json::parse(m.json, nullptr, false);
  if (!j.is_object() || !j.contains("content")) return false;
  if (j["content"].is_string())
    j["content"] = kTurnMarker;
  else if (j["content"].is_array())
    j["content"] = {{{"type", "text"}, {"text", kTurnMarker}}};
  else
    return false;
  m.json = j.dump();
  return true;
}

}  // namespace

// The span of message i; nullopt if it is not found, for the reason why().
std::optional<TextSpan> TurnFinder::find(std::size_t i) {
  why_.clear();
  const auto begin = find_begin(i);
  if (!begin) return std::nullopt;
  const auto end = find_end(i, *begin);
  if (!end || *end < *begin) return std::nullopt;
  return TextSpan{*begin, *end};
}

std::optional<std::string> TurnFinder::tried(std::span<const ChatMessage> messages, bool generation_prompt) {
  try {
    return render_(messages, generation_prompt);
  } catch (const ContentsError& e) {
    why_ = e.what();
    return std::nullopt;
  }
}

std::string_view TurnFinder::text_from(std::size_t begin, std::size_t end) const {
  return std::string_view(text_).substr(begin, end - begin);
}

// A turn starts after the generation prompt if the conversation before the turn, with the prompt, is a
// prefix of the whole text.
std::optional<std::size_t> TurnFinder::find_begin(std::size_t i) {
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
    if (const auto content = find_content(i); content && content->begin > at && !has_reasoning(messages_[i]))
      if (!jinja::strip(text_from(at, content->begin)).empty()) return content->begin;
    return at;
  }
  if (const auto content = find_content(i)) return content->begin;
  if (prompted) why_ += "the text before it depends on later messages";
  return std::nullopt;
}

std::optional<std::size_t> TurnFinder::find_end(std::size_t i, std::size_t begin) {
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

// Finds the content of a message by rendering the conversation with a marker in its place.
std::optional<TextSpan> TurnFinder::find_content(std::size_t i) {
  std::vector<ChatMessage> marked(messages_.begin(), messages_.end());
  if (!mark(marked[i])) return std::nullopt;
  const auto whole = tried(marked, false);
  if (!whole) return std::nullopt;
  const std::size_t at = whole->find(kTurnMarker);
  if (at == std::string::npos || whole->find(kTurnMarker, at + 1) != std::string::npos) {
    why_ = "the template doesn't write its content exactly once and unchanged";
    return std::nullopt;
  }
  const std::string_view head = std::string_view(*whole).substr(0, at);
  const std::string_view tail = std::string_view(*whole).substr(at + kTurnMarker.size());
  if (!text_.starts_with(head) || !text_.ends_with(tail) || head.size() + tail.size() > text_.size()) {
    why_ = "the text around it depends on its content";
    return std::nullopt;
  }
  return TextSpan{head.size(), text_.size() - tail.size()};
}

}  // namespace redco

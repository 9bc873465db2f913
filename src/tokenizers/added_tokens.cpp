#include "tokenizers/added_tokens.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/log_once.h"
#include "base/utf8.h"
#include "unicode/char_class.h"
#include "unicode/hf_chars.h"

namespace redco {
namespace {

constexpr std::size_t kMaxContent = 1024;  // bytes; limits the cost of a search

bool is_word(char32_t c) { return hf_classes()[c] & kHfWord; }

bool ends_with_word(std::string_view text) {
  if (text.empty()) return false;
  const char* p = previous_character(text.data(), text.data() + text.size());
  return is_word(next_code_point(p));
}

bool starts_with_word(std::string_view text) {
  if (text.empty()) return false;
  const char* p = text.data();
  return is_word(next_code_point(p));
}

// The position at which the trailing white space of `text` starts.
std::size_t trailing_space(std::string_view text) {
  const char* begin = text.data();
  const char* p = begin + text.size();
  while (p > begin) {
    const char* start = previous_character(begin, p);
    const char* q = start;
    if (!(char_classes()[next_code_point(q)] & kSpace)) break;
    p = start;
  }
  return static_cast<std::size_t>(p - begin);
}

std::size_t leading_space(std::string_view text) {
  const char* p = text.data();
  const char* end = p + text.size();
  while (p < end) {
    const char* q = p;
    if (!(char_classes()[next_code_point(q)] & kSpace)) break;
    p = q;
  }
  return static_cast<std::size_t>(p - text.data());
}

}  // namespace

AddedTokens::AddedTokens(const nlohmann::json* list, const Vocab& vocab, const Normalizer* normalizer,
                         const std::string& where) {
  if (list == nullptr || list->is_null()) return;
  if (!list->is_array()) throw ContentsError("{}: expected an array", where);
  i32 largest = -1;
  for (std::size_t k = 0; k < list->size(); ++k) {
    JsonFields f((*list)[k], fmt::format("{}[{}]", where, k));
    AddedToken t;
    t.content = f.text("content");
    const i64 id = f.integer("id");
    t.single_word = f.boolean("single_word", false);
    t.lstrip = f.boolean("lstrip", false);
    t.rstrip = f.boolean("rstrip", false);
    t.normalized = f.boolean("normalized", true);
    t.special = f.boolean("special", false);
    f.finish();
    if (t.content.empty() || t.content.size() > kMaxContent)
      throw ContentsError("{}: a token of {} bytes; expected 1 to {} bytes", f.at("content"),
                          t.content.size(), kMaxContent);
    if (by_content_.count(t.content)) {  // Hugging Face keeps the first
      log_once(LogLevel::warn, fmt::format("{}: '{}' is listed twice; the first entry is used",
                                           f.at("content"), t.content.substr(0, 100)));
      continue;
    }
    // As Hugging Face does, whatever the file says: ids of the vocabulary, else the next free one.
    const i32 in_vocab = vocab.find(t.content);
    const i64 given = in_vocab >= 0              ? in_vocab
                      : largest >= vocab.count() ? i64{largest} + 1
                                                 : i64{vocab.count()};
    if (given > Vocab::kMaxId)
      throw ContentsError("{}: id {} is larger than the maximum {}", f.at("id"), given, Vocab::kMaxId);
    if (in_vocab < 0 && vocab.has(static_cast<i32>(given)))
      throw ContentsError("{}: '{}' and '{}' both have id {}", f.at("id"), t.content.substr(0, 100),
                          vocab.token(static_cast<i32>(given)).substr(0, 100), given);
    if (id != given)
      log_once(LogLevel::warn,
               fmt::format("{}: '{}' has id {} in the file, but gets {}, as in transformers: {}", f.at("id"),
                           t.content.substr(0, 100), id, given,
                           in_vocab >= 0 ? "the id in the vocabulary" : "the next free id"));
    t.id = static_cast<i32>(given);
    largest = std::max(largest, t.id);
    by_id_[t.id] = tokens_.size();
    by_content_[t.content] = tokens_.size();
    t.pattern = t.normalized && normalizer != nullptr ? normalizer->normalize(t.content) : t.content;
    tokens_.push_back(std::move(t));
  }
  for (const bool normalized : {false, true}) {
    Set& set = sets_[normalized];
    std::vector<std::pair<std::string_view, i32>> keys;
    for (std::size_t k = 0; k < tokens_.size(); ++k) {
      const std::string& pattern = tokens_[k].pattern;
      if (tokens_[k].normalized != normalized || pattern.empty()) continue;
      keys.emplace_back(pattern, static_cast<i32>(k));
      set.first[static_cast<unsigned char>(pattern[0])] = true;
    }
    set.trie = Trie(std::move(keys));
    if (std::count(set.first.begin(), set.first.end(), true) == 1)
      set.single_first =
          static_cast<int>(std::find(set.first.begin(), set.first.end(), true) - set.first.begin());
  }
}

void AddedTokens::split(std::string_view text, bool normalized, std::vector<AddedSpan>& out) const {
  const Set& set = sets_[normalized];
  const char* text_end = text.data() + text.size();
  std::size_t done = 0;
  std::size_t at = set.trie.empty() ? text.size() : 0;
  while (at < text.size()) {
    if (set.single_first >= 0) {
      const void* hit = std::memchr(text.data() + at, set.single_first, text.size() - at);
      if (hit == nullptr) break;
      at = static_cast<std::size_t>(static_cast<const char*>(hit) - text.data());
    } else {
      while (at < text.size() && !set.first[static_cast<unsigned char>(text[at])]) ++at;
      if (at == text.size()) break;
    }
    const auto [length, index] = set.trie.longest(text.data() + at, text_end);
    if (index < 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<std::size_t>(index)];
    std::size_t begin = at, end = at + length;
    at = end;
    if (token.single_word && (ends_with_word(text.substr(0, begin)) || starts_with_word(text.substr(end))))
      continue;
    // The search continues directly after the pattern: an added token of white space may match the white
    // space that rstrip included.
    if (token.lstrip) begin = std::min(std::max(trailing_space(text.substr(0, begin)), done), end);
    if (token.rstrip) end += leading_space(text.substr(end));
    if (done < begin) out.push_back({text.substr(done, begin - done), -1});
    out.push_back({text.substr(begin, end - begin), token.id});
    done = end;
  }
  if (done < text.size()) out.push_back({text.substr(done), -1});
}

const AddedToken* AddedTokens::find(i32 id) const {
  const auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : &tokens_[it->second];
}

i32 AddedTokens::find(std::string_view content) const {
  const auto it = by_content_.find(content);
  return it == by_content_.end() ? -1 : tokens_[it->second].id;
}

bool AddedTokens::is_special(i32 id) const {
  const AddedToken* t = find(id);
  return t != nullptr && t->special;
}

bool AddedTokens::is_special(std::string_view content) const {
  const auto it = by_content_.find(content);
  return it != by_content_.end() && tokens_[it->second].special;
}

i32 AddedTokens::size() const { return by_id_.empty() ? 0 : by_id_.rbegin()->first + 1; }

unsigned AddedTokens::cuts() const {
  const bool sound = std::all_of(tokens_.begin(), tokens_.end(), [](const AddedToken& t) {
    // // rstrip includes white space after the token, which a cut would separate. single_word looks at the
    // next
    // character: white space without the cut, the text's end with it. The result is the same.
    return !t.rstrip && t.pattern.find_first_of(" \n\r\t") == std::string::npos;
  });
  return sound ? kCutBoth : kNoCuts;
}

}  // namespace redco

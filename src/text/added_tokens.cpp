#include "text/added_tokens.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/char_class.h"
#include "text/json_fields.h"
#include "text/utf8.h"

namespace redco {
namespace {

constexpr std::size_t kMaxContent = 1024;  // bytes; bounds the search for one token

bool is_word(char32_t c) { return (char_classes()[c] & kWord) || c == 0x200C || c == 0x200D; }

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

// Where the white space at the end of `text` begins.
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

AddedTokens::AddedTokens(const nlohmann::json* list, const Vocab& vocab, const std::string& where) {
  if (list == nullptr || list->is_null()) return;
  if (!list->is_array()) throw ContentsError("{}: an array was expected", where);
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
      throw ContentsError("{}: a token of {} bytes; 1 to {} are taken", f.at("content"), t.content.size(),
                          kMaxContent);
    if (by_content_.count(t.content))
      throw ContentsError("{}: '{}' is in the list twice", f.at("content"), t.content.substr(0, 100));
    const i32 in_vocab = vocab.find(t.content);
    const i64 expected = in_vocab >= 0              ? in_vocab
                         : largest >= vocab.count() ? i64{largest} + 1
                                                    : i64{vocab.count()};
    if (id != expected)
      throw ContentsError("{}: '{}' has id {}, but {} {}; ids must have no gaps and no duplicates",
                          f.at("id"), t.content.substr(0, 100), id,
                          in_vocab >= 0 ? "the vocabulary gives it" : "the next free id is", expected);
    if (id > Vocab::kMaxId) throw ContentsError("{}: id {} is over {}", f.at("id"), id, Vocab::kMaxId);
    if (in_vocab < 0 && vocab.has(static_cast<i32>(id)))
      throw ContentsError("{}: '{}' and '{}' both have id {}", f.at("id"), t.content.substr(0, 100),
                          vocab.token(static_cast<i32>(id)).substr(0, 100), id);
    t.id = static_cast<i32>(id);
    largest = std::max(largest, t.id);
    by_id_[t.id] = tokens_.size();
    by_content_[t.content] = tokens_.size();
    Trie& trie = tries_[t.normalized];
    if (trie.nodes.empty()) trie.nodes.emplace_back();
    u32 node = 0;
    for (char c : t.content) {
      const auto b = static_cast<unsigned char>(c);
      auto it = trie.nodes[node].next.find(b);
      if (it == trie.nodes[node].next.end()) {
        const auto made = static_cast<u32>(trie.nodes.size());
        trie.nodes[node].next.emplace(b, made);
        trie.nodes.emplace_back();
        node = made;
      } else {
        node = it->second;
      }
    }
    trie.nodes[node].token = static_cast<i32>(tokens_.size());
    trie.first[static_cast<unsigned char>(t.content[0])] = true;
    tokens_.push_back(std::move(t));
  }
  for (Trie& trie : tries_)
    if (std::count(trie.first.begin(), trie.first.end(), true) == 1)
      trie.single_first =
          static_cast<int>(std::find(trie.first.begin(), trie.first.end(), true) - trie.first.begin());
}

const AddedToken* AddedTokens::longest_at(const Trie& trie, std::string_view text, std::size_t at) const {
  i32 best = -1;
  u32 node = 0;
  for (std::size_t k = at; k < text.size(); ++k) {
    const auto& next = trie.nodes[node].next;
    const auto it = next.find(static_cast<unsigned char>(text[k]));
    if (it == next.end()) break;
    node = it->second;
    if (trie.nodes[node].token >= 0) best = trie.nodes[node].token;
  }
  return best < 0 ? nullptr : &tokens_[static_cast<std::size_t>(best)];
}

void AddedTokens::split(std::string_view text, bool normalized, std::vector<AddedSpan>& out) const {
  const Trie& trie = tries_[normalized];
  std::size_t done = 0;
  std::size_t at = trie.nodes.empty() ? text.size() : 0;
  while (at < text.size()) {
    if (trie.single_first >= 0) {
      const void* hit = std::memchr(text.data() + at, trie.single_first, text.size() - at);
      if (hit == nullptr) break;
      at = static_cast<std::size_t>(static_cast<const char*>(hit) - text.data());
    } else {
      while (at < text.size() && !trie.first[static_cast<unsigned char>(text[at])]) ++at;
      if (at == text.size()) break;
    }
    const AddedToken* token = longest_at(trie, text, at);
    if (token == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = at, end = at + token->content.size();
    at = end;
    if (token->single_word && (ends_with_word(text.substr(0, begin)) || starts_with_word(text.substr(end))))
      continue;
    if (token->lstrip) begin = std::max(trailing_space(text.substr(0, begin)), done);
    if (token->rstrip) end += leading_space(text.substr(end));
    if (done < begin) out.push_back({text.substr(done, begin - done), -1});
    // A token that starts with white space may begin inside what the one before it stripped.
    if (begin < done) begin = done;
    out.push_back({text.substr(begin, std::max(end, begin) - begin), token->id});
    done = std::max(end, begin);
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

i32 AddedTokens::size() const { return by_id_.empty() ? 0 : by_id_.rbegin()->first + 1; }

bool AddedTokens::cuts_at_spaces() const {
  return std::all_of(tokens_.begin(), tokens_.end(), [](const AddedToken& t) {
    // rstrip takes white space behind the token; single_word looks at the character behind it, which is white
    // space before the cut and the text's end after it: the same answer.
    return !t.rstrip && t.content.find_first_of(" \n\r\t") == std::string::npos;
  });
}

}  // namespace redco

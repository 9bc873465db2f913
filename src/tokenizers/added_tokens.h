// Added tokens: tokens that are split off the text before all other stages, such as <|endoftext|>, <mask> and
// <tool_call>.
#pragma once

#include <array>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/models/trie.h"
#include "tokenizers/models/vocab.h"
#include "tokenizers/normalizers/normalizers.h"

namespace redco {

struct AddedToken {
  std::string content;
  // The text to search for, which decoders see too: the content, normalized if `normalized` is set.
  std::string pattern;
  i32 id = -1;
  bool single_word = false;  // matches only between characters outside of words
  bool lstrip = false;       // includes the white space before it
  bool rstrip = false;       // includes the white space after it
  bool normalized = true;    // is searched for in the normalized text
  bool special = false;      // decode(skip_special) omits it
};

// A part of a text: an added token with its id, or the text between added tokens with id -1.
struct AddedSpan {
  std::string_view text;
  i32 id;
};

// Immutable and thread-safe.
class AddedTokens {
 public:
  AddedTokens() = default;

  // list: the `added_tokens` of a tokenizer.json, or null. As in Hugging Face, a token gets the vocabulary's
  // id of the same text, or continues the vocabulary without a gap, whatever id the file gives, and the first
  // entry of a text counts; a warning names such tokens.
  AddedTokens(const nlohmann::json* list, const Vocab& vocab, const Normalizer* normalizer,
              const std::string& where);

  // Splits `text` at the added tokens whose `normalized` equals the argument. The leftmost match wins, then
  // the longest. The parts cover the text; empty parts are omitted.
  void split(std::string_view text, bool normalized, std::vector<AddedSpan>& out) const;

  bool any(bool normalized) const { return !sets_[normalized].trie.empty(); }
  const AddedToken* find(i32 id) const;
  i32 find(std::string_view content) const;  // id or -1
  bool is_special(i32 id) const;
  bool is_special(std::string_view content) const;
  i32 size() const;  // the largest id + 1; 0 without tokens
  const std::vector<AddedToken>& all() const { return tokens_; }

  // CutKinds: where a text may be split without splitting an added token or changing the characters around
  // one.
  unsigned cuts() const;

 private:
  struct Set {
    Trie trie;  // pattern -> index in tokens_
    std::array<bool, 256> first{};
    int single_first = -1;  // the first byte of all patterns if they share it, else -1
  };

  std::vector<AddedToken> tokens_;
  std::map<i32, std::size_t> by_id_;
  std::map<std::string, std::size_t, std::less<>> by_content_;
  std::array<Set, 2> sets_;  // indexed by AddedToken::normalized
};

}  // namespace redco

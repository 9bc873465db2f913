// Tokens that are cut out of the text before anything else happens to it: <|endoftext|>, <mask>, <tool_call>.
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
  // What is looked for, and what decoders see: the content, or what the normalizer makes of it.
  std::string pattern;
  i32 id = -1;
  bool single_word = false;  // only between characters that are no part of a word
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // and behind it
  bool normalized = true;    // looked for in the normalized text
  bool special = false;      // left out of decoded text on demand
};

// A part of a text: an added token's id, or -1 for text between them.
struct AddedSpan {
  std::string_view text;
  i32 id;
};

// Const after construction and thread-safe.
class AddedTokens {
 public:
  AddedTokens() = default;

  // The `added_tokens` of a tokenizer.json (null for none). Ids must be those the vocabulary has for the same
  // text, or continue it without a gap, because Hugging Face numbers them so whatever the file says; anything
  // else is a ContentsError.
  AddedTokens(const nlohmann::json* list, const Vocab& vocab, const Normalizer* normalizer,
              const std::string& where);

  // Cuts `text` at the tokens with `normalized` as given: leftmost first, the longest of those that start
  // there. The parts cover the text; empty ones are left out.
  void split(std::string_view text, bool normalized, std::vector<AddedSpan>& out) const;

  bool any(bool normalized) const { return !sets_[normalized].trie.empty(); }
  const AddedToken* find(i32 id) const;
  i32 find(std::string_view content) const;  // id or -1
  bool is_special(i32 id) const;
  bool is_special(std::string_view content) const;
  i32 size() const;  // the largest id + 1, 0 without tokens
  const std::vector<AddedToken>& all() const { return tokens_; }

  // Where a text may be cut without dividing a token or changing one's surroundings: CutKinds.
  unsigned cuts() const;

 private:
  struct Set {
    Trie trie;  // of indices by pattern
    std::array<bool, 256> first{};
    int single_first = -1;  // the first byte of every pattern, where it is one and the same
  };

  std::vector<AddedToken> tokens_;
  std::map<i32, std::size_t> by_id_;
  std::map<std::string, std::size_t, std::less<>> by_content_;
  std::array<Set, 2> sets_;  // by AddedToken::normalized
};

}  // namespace redco

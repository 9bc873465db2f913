// The precompiled character map of a sentencepiece model: texts and what they become, in a double-array trie.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace redco {

// Const and thread-safe. Whatever the bytes are, a look-up stays inside them.
class Charsmap {
 public:
  // blob: the trie's size in bytes (u32, little endian), the trie, and texts with a NUL behind each.
  // ContentsError, with `where` in front, for sizes that don't fit and texts that are no UTF-8.
  Charsmap(std::string_view blob, const std::string& where);

  // What the shortest, or the longest, prefix of `text` with a rule becomes, and its bytes in `length`;
  // nothing where none has a rule.
  std::optional<std::string_view> shortest(std::string_view text, std::size_t& length) const;
  std::optional<std::string_view> longest(std::string_view text, std::size_t& length) const;

 private:
  template <class F>
  void prefixes(std::string_view text, F&& f) const;
  std::optional<std::string_view> text_at(u32 value) const;

  std::vector<u32> units_;
  std::string texts_;
};

}  // namespace redco

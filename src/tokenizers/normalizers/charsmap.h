// The precompiled character map of a sentencepiece model: rules that replace a text by another, in a
// double-array trie.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace redco {

// Immutable and thread-safe. Look-ups are memory-safe for any bytes.
class Charsmap {
 public:
  // blob: the trie's size in bytes (u32, little endian), the trie, and NUL-terminated texts. ContentsError,
  // starting with `where`, for wrong sizes and texts that are not UTF-8.
  Charsmap(std::string_view blob, const std::string& where);

  // The replacement of the shortest (or longest) prefix of `text` that has a rule; `length` gets the prefix's
  // bytes. nullopt if no prefix has a rule.
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

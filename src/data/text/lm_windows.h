// Language-model examples: a token index cut into windows.
#pragma once

#include <span>
#include <vector>

#include "data/text/token_index.h"

namespace redco {

// Raised when the same tokens could give other windows.
inline constexpr u32 kPackingVersion = 1;

// Windows of max_length + 1 tokens, each beginning with the last token of the previous one: window w has the
// tokens [w * max_length, min((w + 1) * max_length, size - 1)] and predicts all but its first. So every
// token of the data except the very first is a target exactly once; the last window may be shorter.
//
// Refers to the index, which must outlive it. Const and thread-safe.
class LmWindows {
 public:
  // max_length: targets in a full window. UsageError unless it is at least 1, ContentsError for fewer than
  // two tokens.
  LmWindows(const TokenIndex& tokens, i64 max_length);

  i64 size() const { return n_; }
  i64 max_length() const { return max_length_; }
  i64 n_targets() const { return tokens_->size() - 1; }

  // Number of targets of window w. It has as many inputs, and one token more.
  i64 n_targets(i64 w) const;
  i64 length(i64 w) const { return n_targets(w) + 1; }  // tokens

  // REQUIRES out.size() == length(w). ends: see TokenIndex::read.
  void read(i64 w, std::span<i32> out, std::span<std::uint8_t> ends = {}) const;
  std::vector<i32> read(i64 w) const;

 private:
  const TokenIndex* tokens_;
  i64 max_length_, n_;
};

}  // namespace redco

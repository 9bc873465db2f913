// The vocabulary of a model: text <-> id, in flat arrays.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace redco {

// add() fills it, finish() completes it. From then on it is immutable and thread-safe.
class Vocab {
 public:
  static constexpr i64 kMaxId = (1 << 22) - 1;  // four times the largest vocabulary known

  // ContentsError, starting with `where` (file and field), for an id outside of 0..kMaxId. REQUIRES not
  // finished.
  void add(std::string_view token, i64 id, const std::string& where);

  // Builds the indices. ContentsError for two tokens with one id. ContentsError for one token with two ids,
  // unless `repeats` (a Unigram's list may repeat tokens): find() then returns the last id.
  void finish(const std::string& where, bool repeats = false);

  i32 find(std::string_view token) const;  // its id, or -1
  bool has(i32 id) const { return id >= 0 && id < size() && by_id_[static_cast<std::size_t>(id)] != 0; }
  std::string_view token(i32 id) const;                         // "" if there is none
  i32 size() const { return static_cast<i32>(by_id_.size()); }  // the largest id + 1
  i32 count() const { return static_cast<i32>(entries_.size()); }

 private:
  struct Entry {
    u32 offset, length;
    i32 id;
  };
  std::string_view text_of(const Entry& e) const {
    return std::string_view(text_).substr(e.offset, e.length);
  }

  std::string text_;
  std::vector<Entry> entries_;
  std::vector<u32> by_id_;  // entry + 1; 0: no token has the id
  std::vector<u32> slots_;  // hash table with open addressing, by text: entry + 1
};

}  // namespace redco

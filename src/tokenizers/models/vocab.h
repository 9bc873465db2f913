// The tokens of a model: text <-> id, packed into three flat arrays.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace redco {

// Filled by add(), then finish()ed once; const from then on and safe for any number of threads.
class Vocab {
 public:
  static constexpr i64 kMaxId = (1 << 22) - 1;  // four times the largest vocabulary known

  // REQUIRES not finished. `where` (file and field) goes in front of errors: an id outside 0..kMaxId is a
  // ContentsError.
  void add(std::string_view token, i64 id, const std::string& where);

  // Builds the indices. ContentsError for two tokens with one id and for one token with two ids, unless
  // repeats are allowed (a Unigram's list may have them): find() then gives the last one.
  void finish(const std::string& where, bool repeats = false);

  i32 find(std::string_view token) const;  // its id, or -1
  bool has(i32 id) const { return id >= 0 && id < size() && by_id_[static_cast<std::size_t>(id)] != 0; }
  std::string_view token(i32 id) const;                         // "" where there is none
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
  std::vector<u32> by_id_;  // entry + 1, 0 for a gap
  std::vector<u32> slots_;  // open addressing by hash of the text: entry + 1
};

}  // namespace redco

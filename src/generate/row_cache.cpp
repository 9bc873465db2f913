#include "generate/row_cache.h"

#include <algorithm>

namespace redco {

ModelCache RowCache::release() {
  ModelCache out = std::move(cache_);
  *this = {};
  return out;
}

void RowCache::insert(const RowCache& other, std::span<const i64> from, std::span<const i64> to, i64 rows) {
  const bool fresh = begin_.empty();
  if (fresh) begin_.assign(rows, other.length());
  if (!fresh && other.length() > length()) {
    const i64 by = other.length() - length(), needed = other.length();
    move(by, needed > capacity() ? needed + needed / 4 : capacity());
  }
  const i64 memory_before = memory_length();
  std::vector<RowCopy> copies;
  for (std::size_t i = 0; i < from.size(); ++i)
    copies.push_back({from[i], to[i], other.length() - other.begin_[from[i]]});
  cache_.insert(other.cache_, copies, rows);
  for (const RowCopy& c : copies) begin_[c.to] = length() - c.tokens;
  insert_memory_masks(other, from, to, memory_before);
}

// The masks of the rows that were inserted. The memory had `before` columns; it may be longer now, and it may
// have been without padding.
void RowCache::insert_memory_masks(const RowCache& other, std::span<const i64> from, std::span<const i64> to,
                                   i64 before) {
  const i64 wide = memory_length(), theirs = other.memory_length();
  if (memory_mask_.empty() && other.memory_mask_.empty() && theirs == wide && (before == wide || before == 0))
    return;
  std::vector<i32> mask(rows() * wide, 0);
  for (i64 r = 0; r < rows(); ++r)
    for (i64 i = 0; i < (before == 0 ? wide : before); ++i)
      mask[r * wide + i] = memory_mask_.empty() ? 1 : memory_mask_[r * before + i];
  for (std::size_t j = 0; j < from.size(); ++j)
    for (i64 i = 0; i < wide; ++i)
      mask[to[j] * wide + i] =
          i < theirs && (other.memory_mask_.empty() || other.memory_mask_[from[j] * theirs + i] != 0);
  memory_mask_ = std::move(mask);
}

void RowCache::fork(std::span<const i64> source, i64 columns) {
  cache_.fork(source, std::min(columns, length()));
}

void RowCache::drop_rows(std::span<const i64> kept) {
  cache_.drop_rows(kept);
  const i64 wide = memory_length();
  std::vector<i64> begin;
  std::vector<i32> mask;
  for (const i64 r : kept) {
    begin.push_back(begin_[r]);
    if (!memory_mask_.empty())
      mask.insert(mask.end(), memory_mask_.begin() + r * wide, memory_mask_.begin() + (r + 1) * wide);
  }
  begin_ = std::move(begin);
  memory_mask_ = std::move(mask);
}

void RowCache::move(i64 by, i64 capacity) {
  cache_.move(by, capacity);
  for (i64& b : begin_) b += by;
}

void RowCache::make_room(i64 n, const std::vector<bool>& live) {
  i64 first = length();
  for (i64 r = 0; r < rows(); ++r) {
    if (!live[r]) begin_[r] = length();
    first = std::min(first, begin_[r]);
  }
  if (length() + n <= capacity()) return;
  // Moving rows pays only if it frees enough columns for many steps.
  if (first >= n && first >= length() / 4) {
    move(-first, capacity());
    return;
  }
  const i64 needed = length() + n;
  move(0, needed + std::max<i64>(64, needed / 2));
}

}  // namespace redco

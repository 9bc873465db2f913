#include "nn/cache_forms.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "ops/attention.h"
#include "ops/create.h"
#include "ops/redistribute.h"
#include "ops/shape.h"

namespace redco {

namespace {

// An entry as a cache keeps it.
Tensor stored(const Tensor& x, CacheDType dtype) {
  const Tensor whole = without_partials(x);
  return dtype == CacheDType::bf16 && whole.is_float() ? cast(whole, DType::bf16) : to_sum_type(whole);
}

// [rows, columns, ...] with t's layout, filled with zeros: masked positions of attention must be finite.
Tensor like(const Tensor& t, i64 rows, i64 columns) {
  Shape s = t.shape();
  s[0] = rows;
  s[1] = columns;
  return zeros(s, t.dtype(), t.layout());
}

struct Place {
  i64 row, column;
};

// Copies `rows` rows of n columns.
void copy(const Tensor& from, Place at, const Tensor& to, Place there, i64 rows, i64 n) {
  if (rows <= 0 || n <= 0) return;
  REDCO_CHECK(to.layout() == from.layout() && to.dtype() == from.dtype() && to.storage() != from.storage(),
              "[cache] {} from {}", describe(to), describe(from));
  for (const Tensor* t : {&from, &to})
    REDCO_CHECK(t->local()[0] == t->shape()[0] && t->local()[1] == t->shape()[1],
                "[cache] rows of {} are moved, which is cut along rows or columns", describe(*t));
  Context::current().run(&Kernels::copy, from.view().narrowed(0, at.row, rows).narrowed(1, at.column, n),
                         to.view().narrowed(0, there.row, rows).narrowed(1, there.column, n));
}

// Row i of `to` becomes row which[i] of `from`: n columns. Consecutive rows are copied together.
void copy_rows(const Tensor& from, std::span<const i64> which, i64 column, const Tensor& to, i64 to_column,
               i64 n) {
  const i64 rows = static_cast<i64>(which.size());
  for (i64 i = 0, end = 0; i < rows; i = end) {
    for (end = i + 1; end < rows && which[end] == which[end - 1] + 1;) ++end;
    copy(from, {which[i], column}, to, {i, to_column}, end - i, n);
  }
}

std::vector<i64> all_rows(const Tensor& t) {
  std::vector<i64> out(static_cast<std::size_t>(t.shape()[0]));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

i64 bytes_of(const Tensors& entries) {
  i64 n = 0;
  for (const Tensor& t : entries) n += t.local_bytes();
  return n;
}

}  // namespace

// --- ColumnCache -----------------------------------------------------------------------------------------

// The first column that a pass after column `length` reads.
i64 ColumnCache::first_needed(i64 length) const {
  return window_ > 0 ? std::max<i64>(0, length - window_ + 1) : 0;
}

// The slots to allocate for these columns. A window gets some more, so that it is moved only once in a while.
i64 ColumnCache::slots_for(i64 columns) const {
  if (window_ == 0) return capacity_;
  return std::max(columns, std::min(capacity_, window_ + std::max<i64>(64, window_ / 4)));
}

void ColumnCache::append(const Tensors& entries, i64 tokens) {
  Tensors added;
  for (const Tensor& x : entries) added.push_back(stored(x, dtype_));
  if (entries_.empty()) {
    first_ = first_needed(length_);
    for (const Tensor& x : added)
      entries_.push_back(like(x, x.shape()[0], slots_for(length_ - first_ + tokens)));
  } else if (window_ > 0 && length_ - first_ + tokens > slots()) {
    const i64 first = std::max(first_, first_needed(length_));
    rearrange(all_rows(entries_[0]), 0, first, slots_for(length_ - first + tokens));
  }
  REDCO_CHECK(added.size() == entries_.size() && length_ - first_ + tokens <= slots(),
              "[cache] {} entries of {} tokens after column {} do not fit into {} of {} columns",
              added.size(), tokens, length_, entries_.size(), slots());
  for (std::size_t i = 0; i < added.size(); ++i) cache_write(entries_[i], added[i], length_ - first_);
  length_ += tokens;
}

void ColumnCache::fork(std::span<const i64> source, i64 columns) {
  std::vector<i64> from, to;
  for (i64 r = 0; r < static_cast<i64>(source.size()); ++r)
    if (source[r] != r) {
      from.push_back(source[r]);
      to.push_back(r);
    }
  const i64 n = std::min(columns, length_ - first_), slot = length_ - first_ - n;
  if (from.empty() || n <= 0) return;
  for (const Tensor& t : entries_) {
    const Tensor held = like(t, static_cast<i64>(from.size()), n);  // all are read before any is written
    copy_rows(t, from, slot, held, 0, n);
    for (std::size_t i = 0; i < to.size(); ++i) copy(held, {static_cast<i64>(i), 0}, t, {to[i], slot}, 1, n);
  }
}

void ColumnCache::drop_rows(std::span<const i64> kept) {
  if (!entries_.empty()) rearrange(kept, 0, first_, slots());
}

void ColumnCache::insert(const LayerCache& from, std::span<const RowCopy> copies, i64 rows) {
  const auto& other = dynamic_cast<const ColumnCache&>(from);
  if (entries_.empty()) {
    length_ = other.length_;
    first_ = first_needed(length_);
    for (const Tensor& t : other.entries_) entries_.push_back(like(t, rows, slots_for(length_ - first_)));
  }
  for (const RowCopy& c : copies) {
    const i64 n = std::min({c.tokens, length_ - first_, other.length_ - other.first_});
    for (std::size_t i = 0; i < entries_.size(); ++i)
      copy(other.entries_[i], {c.from, other.length_ - other.first_ - n}, entries_[i],
           {c.to, length_ - first_ - n}, 1, n);
  }
}

void ColumnCache::move(i64 by, i64 capacity) {
  capacity_ = std::max(capacity_, capacity);
  const i64 length = length_ + by, first = std::max<i64>(0, std::min(first_ + by, first_needed(length)));
  if (!entries_.empty()) {
    const i64 room = window_ > 0 ? std::max(slots(), length - first) : capacity_;
    // Slots count from first_, so a window that keeps its columns moves without its entries.
    if (first != first_ + by || room != slots()) rearrange(all_rows(entries_[0]), by, first, room);
    first_ = first;
  }
  length_ = length;
}

// Row i becomes the former row rows[i], and column c becomes column c + by, of which slot 0 holds `first`.
// Works on one tensor at a time, so that only one is in memory twice.
void ColumnCache::rearrange(std::span<const i64> rows, i64 by, i64 first, i64 slots) {
  const i64 begin = std::max(first_, first - by);
  for (Tensor& t : entries_) {
    const Tensor next = like(t, static_cast<i64>(rows.size()), slots);
    copy_rows(t, rows, begin - first_, next, begin + by - first, length_ - begin);
    t = next;
  }
  first_ = first;
}

i64 ColumnCache::bytes() const { return bytes_of(entries_); }

// --- MemoryCache -----------------------------------------------------------------------------------------

void MemoryCache::append(const Tensors& entries, i64 tokens) {
  REDCO_CHECK(entries_.empty(), "[cache] a memory of {} entries is written again", length_);
  for (const Tensor& x : entries) entries_.push_back(stored(x, dtype_));
  length_ = tokens;
}

void MemoryCache::drop_rows(std::span<const i64> kept) {
  for (Tensor& t : entries_) {
    const Tensor next = like(t, static_cast<i64>(kept.size()), length_);
    copy_rows(t, kept, 0, next, 0, length_);
    t = next;
  }
}

void MemoryCache::insert(const LayerCache& from, std::span<const RowCopy> copies, i64 rows) {
  const auto& other = dynamic_cast<const MemoryCache&>(from);
  const i64 wide = std::max(length_, other.length_);
  if (entries_.empty())
    for (const Tensor& t : other.entries_) entries_.push_back(like(t, rows, wide));
  for (Tensor& t : entries_) {
    if (t.shape()[1] == wide) continue;
    const Tensor next = like(t, t.shape()[0], wide);
    copy(t, {0, 0}, next, {0, 0}, t.shape()[0], length_);
    t = next;
  }
  length_ = wide;
  for (const RowCopy& c : copies)
    for (std::size_t i = 0; i < entries_.size(); ++i)
      copy(other.entries_[i], {c.from, 0}, entries_[i], {c.to, 0}, 1, other.length_);
}

i64 MemoryCache::bytes() const { return bytes_of(entries_); }

// --- StateCache ------------------------------------------------------------------------------------------

namespace {

// [rows, ...] with t's layout, filled with zeros.
Tensor rows_like(const Tensor& t, i64 rows) {
  Shape s = t.shape();
  s[0] = rows;
  return zeros(s, t.dtype(), t.layout());
}

void copy_row(const Tensor& from, i64 at, const Tensor& to, i64 there) {
  REDCO_CHECK(from.local()[0] == from.shape()[0], "[cache] rows of {} are copied, which is cut along rows",
              describe(from));
  Context::current().run(&Kernels::copy, from.view().narrowed(0, at, 1), to.view().narrowed(0, there, 1));
}

}  // namespace

void StateCache::append(const Tensors& entries, i64 tokens) {
  REDCO_CHECK(entries_.empty() || entries_.size() == entries.size(), "[cache] {} entries after {}",
              entries.size(), entries_.size());
  Tensors next;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Tensor x = without_partials(entries[i].detached());
    next.push_back(entries_.empty() ? x : redistribute(x, entries_[i].layout()));
  }
  entries_ = std::move(next);
  length_ += tokens;
}

void StateCache::drop_rows(std::span<const i64> kept) {
  for (Tensor& t : entries_) {
    const Tensor next = rows_like(t, static_cast<i64>(kept.size()));
    for (std::size_t i = 0; i < kept.size(); ++i) copy_row(t, kept[i], next, static_cast<i64>(i));
    t = next;
  }
}

void StateCache::insert(const LayerCache& from, std::span<const RowCopy> copies, i64 rows) {
  const auto& other = dynamic_cast<const StateCache&>(from);
  if (entries_.empty()) {
    // A layer without a state never has entries, and other rows may be shorter.
    if (length_ == 0) length_ = other.length_;
    for (const Tensor& t : other.entries_) entries_.push_back(rows_like(t, rows));
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    // A copy, because a layer may still read the old state.
    const Tensor next = rows_like(entries_[i], rows),
                 source = redistribute(other.entries_[i], entries_[i].layout());
    std::vector<bool> replaced(static_cast<std::size_t>(rows));
    for (const RowCopy& c : copies) {
      copy_row(source, c.from, next, c.to);
      replaced[static_cast<std::size_t>(c.to)] = true;
    }
    for (i64 r = 0; r < rows; ++r)
      if (!replaced[static_cast<std::size_t>(r)]) copy_row(entries_[i], r, next, r);
    entries_[i] = next;
  }
}

i64 StateCache::bytes() const { return bytes_of(entries_); }

}  // namespace redco

#include "generate/row_cache.h"

#include <algorithm>

#include "base/error.h"
#include "ops/create.h"

namespace redco {

namespace {

// [rows, columns, ...] with t's layout, filled with zeros: masked positions of attention must be finite.
Tensor like(const Tensor& t, i64 rows, i64 columns) {
  REDCO_CHECK(t.local()[0] == t.shape()[0] && t.local()[1] == t.shape()[1],
              "[cache] {} is cut along rows or columns", describe(t));
  Shape s = t.shape();
  s[0] = rows;
  s[1] = columns;
  return zeros(s, t.dtype(), t.layout());
}

// Columns [first, first + n) of one row.
View columns_of(const Tensor& t, i64 row, i64 first, i64 n) {
  return t.view().narrowed(0, row, 1).narrowed(1, first, n);
}

void copy(const Tensor& to, i64 to_row, i64 to_column, const Tensor& from, i64 from_row, i64 from_column,
          i64 n) {
  if (n <= 0) return;
  REDCO_CHECK(to.layout() == from.layout() && to.storage() != from.storage(), "[cache] {} from {}",
              describe(to), describe(from));
  Context::current().run(&Kernels::copy, columns_of(from, from_row, from_column, n),
                         columns_of(to, to_row, to_column, n));
}

}  // namespace

void RowCache::adopt(KvCache cache, std::vector<i64> begin, std::vector<i32> memory_mask) {
  cache_ = std::move(cache);
  begin_ = std::move(begin);
  memory_mask_ = std::move(memory_mask);
}

KvCache RowCache::release() {
  KvCache out = std::move(cache_);
  *this = {};
  return out;
}

i64 RowCache::memory_length() const {
  return cache_.layers.empty() || !cache_.layers[0].cross_k.defined() ? 0
                                                                      : cache_.layers[0].cross_k.shape()[1];
}

void RowCache::insert(RowCache& other, std::span<const i64> from, std::span<const i64> to, i64 rows) {
  const i64 memory = other.memory_length();
  if (begin_.empty()) {
    cache_.max_length = std::max(cache_.max_length, other.cache_.max_length);
    cache_.layers.resize(other.cache_.layers.size());
    for (size_t i = 0; i < cache_.layers.size(); ++i) {
      const KvCache::Layer& l = other.cache_.layers[i];
      KvCache::Layer& mine = cache_.layers[i];
      mine.k = like(l.k, rows, cache_.max_length);
      mine.v = like(l.v, rows, cache_.max_length);
      if (!l.cross_k.defined()) continue;
      mine.cross_k = like(l.cross_k, rows, memory);
      mine.cross_v = like(l.cross_v, rows, memory);
    }
    begin_.assign(rows, other.length());
    cache_.length = other.length();
  }
  if (other.length() > length()) shift(other.length() - length());
  widen_memory(memory);
  const i64 wide = memory_length();
  if (wide > 0 && memory_mask_.empty() && (!other.memory_mask_.empty() || memory < wide))
    memory_mask_.assign(this->rows() * wide, 1);
  for (size_t j = 0; j < from.size(); ++j) {
    const i64 n = other.length() - other.begin_[from[j]];
    begin_[to[j]] = length() - n;
    for (size_t i = 0; i < cache_.layers.size(); ++i) {
      KvCache::Layer& mine = cache_.layers[i];
      const KvCache::Layer& l = other.cache_.layers[i];
      copy(mine.k, to[j], begin_[to[j]], l.k, from[j], other.begin_[from[j]], n);
      copy(mine.v, to[j], begin_[to[j]], l.v, from[j], other.begin_[from[j]], n);
      if (memory == 0) continue;
      copy(mine.cross_k, to[j], 0, l.cross_k, from[j], 0, memory);
      copy(mine.cross_v, to[j], 0, l.cross_v, from[j], 0, memory);
    }
    if (memory_mask_.empty()) continue;
    const auto row = memory_mask_.begin() + to[j] * wide;
    std::fill_n(row, wide, 0);
    if (other.memory_mask_.empty()) {
      std::fill_n(row, memory, 1);
    } else {
      std::copy_n(other.memory_mask_.begin() + from[j] * memory, memory, row);
    }
  }
}

void RowCache::reorder(std::span<const i64> source, i64 columns) {
  std::vector<i64> moved;
  for (i64 r = 0; r < rows(); ++r)
    if (source[r] != r) moved.push_back(r);
  if (moved.empty()) return;
  const i64 first = length() - columns;
  if (columns == 0) return;
  const i64 n = static_cast<i64>(moved.size());
  for (const KvCache::Layer& l : cache_.layers)
    for (const Tensor& t : {l.k, l.v}) {
      const Tensor held = like(t, n, columns);  // all are read before any is written
      for (i64 i = 0; i < n; ++i) copy(held, i, 0, t, source[moved[i]], first, columns);
      for (i64 i = 0; i < n; ++i) copy(t, moved[i], first, held, i, 0, columns);
    }
}

void RowCache::keep(std::span<const i64> which) {
  resize(static_cast<i64>(which.size()), cache_.max_length, 0, which);
}

// `rows` rows of `columns` columns: row i is the former row which[i], moved by `shift` columns. Works on one
// tensor at a time, so that only one tensor is in memory twice.
void RowCache::resize(i64 rows, i64 columns, i64 shift, std::span<const i64> which) {
  std::vector<i64> begin;
  for (const i64 r : which) begin.push_back(begin_[r] + shift);
  for (KvCache::Layer& l : cache_.layers) {
    for (Tensor* t : {&l.k, &l.v}) {
      Tensor next = like(*t, rows, columns);
      for (i64 i = 0; i < rows; ++i)
        copy(next, i, begin[i], *t, which[i], begin_[which[i]], length() - begin_[which[i]]);
      *t = next;
    }
    for (Tensor* t : {&l.cross_k, &l.cross_v}) {
      if (!t->defined() || rows == this->rows()) continue;
      Tensor next = like(*t, rows, t->shape()[1]);
      for (i64 i = 0; i < rows; ++i) copy(next, i, 0, *t, which[i], 0, t->shape()[1]);
      *t = next;
    }
  }
  if (!memory_mask_.empty()) {
    const i64 wide = memory_length();
    std::vector<i32> mask;
    for (const i64 r : which)
      mask.insert(mask.end(), memory_mask_.begin() + r * wide, memory_mask_.begin() + (r + 1) * wide);
    memory_mask_ = std::move(mask);
  }
  begin_ = std::move(begin);
  cache_.max_length = columns;
  cache_.length += shift;
}

namespace {
std::vector<i64> all_of(i64 n) {
  std::vector<i64> out(n);
  for (i64 i = 0; i < n; ++i) out[i] = i;
  return out;
}
}  // namespace

void RowCache::shift(i64 n) {
  const i64 needed = length() + n;
  if (needed > cache_.max_length) {
    resize(rows(), needed + needed / 4, n, all_of(rows()));
    return;
  }
  for (const KvCache::Layer& l : cache_.layers)
    for (const Tensor& t : {l.k, l.v})
      for (i64 r = 0; r < rows(); ++r) {
        const i64 used = length() - begin_[r];
        const Tensor held = like(t, 1, used);  // the two places overlap
        copy(held, 0, 0, t, r, begin_[r], used);
        copy(t, r, begin_[r] + n, held, 0, 0, used);
      }
  for (i64& b : begin_) b += n;
  cache_.length += n;
}

void RowCache::make_room(i64 n, const std::vector<bool>& live) {
  if (cache_.layers.empty() || length() + n <= cache_.max_length) return;
  i64 first = length();
  for (i64 r = 0; r < rows(); ++r)
    if (live[r]) first = std::min(first, begin_[r]);
  // Moving rows pays only if it frees enough columns for many steps.
  if (first >= n && first >= length() / 4) {
    for (i64& b : begin_) b = std::max(b, first);
    shift(-first);
    return;
  }
  const i64 needed = length() + n;
  resize(rows(), needed + std::max<i64>(64, needed / 2), 0, all_of(rows()));
}

void RowCache::widen_memory(i64 wanted) {
  const i64 wide = memory_length();
  if (wanted <= wide) return;
  for (KvCache::Layer& l : cache_.layers)
    for (Tensor* t : {&l.cross_k, &l.cross_v}) {
      Tensor next = like(*t, rows(), wanted);
      for (i64 r = 0; r < rows(); ++r) copy(next, r, 0, *t, r, 0, wide);
      *t = next;
    }
  std::vector<i32> mask(rows() * wanted, 0);
  for (i64 r = 0; r < rows(); ++r)
    for (i64 i = 0; i < wide; ++i)
      mask[r * wanted + i] = memory_mask_.empty() ? 1 : memory_mask_[r * wide + i];
  memory_mask_ = std::move(mask);
}

}  // namespace redco

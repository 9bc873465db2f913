// The KV cache of rows that come and go.
//
// All rows end at the same column, length(); row r's first token lies at begin(r), what is before it is
// padding. So one step writes one column, whatever the rows' own lengths, and a prompt that was prefilled
// elsewhere is copied in behind the others' column. Columns before the first begin are given back by moving
// all rows to the left; a full cache grows. Keys were turned by their positions before they came here, so
// moving them changes nothing.
//
// Every rank of the mp group makes the same calls; heads may be cut over it, rows and columns are not.
#pragma once

#include <span>
#include <vector>

#include "nn/layers.h"

namespace redco {

class RowCache {
 public:
  KvCache& kv() { return cache_; }
  i64 rows() const { return static_cast<i64>(begin_.size()); }
  i64 length() const { return cache_.length; }
  i64 begin(i64 row) const { return begin_[row]; }
  const std::vector<i64>& begins() const { return begin_; }

  // Takes over a cache with one row for each entry of `begin` (and of memory_mask, [rows, S], where the model
  // has a memory), in place of what was here.
  void adopt(KvCache cache, std::vector<i64> begin, std::vector<i32> memory_mask);
  // The cache as it is, for another time; this one is empty then.
  KvCache release();

  // Row to[i] becomes a copy of row from[i] of `other`. An empty RowCache gets `rows` rows first.
  void insert(RowCache& other, std::span<const i64> from, std::span<const i64> to, i64 rows);
  // Row r becomes a copy of the former row source[r]; they differ in the last `columns` columns alone.
  void reorder(std::span<const i64> source, i64 columns);
  // Only these rows stay, in this order.
  void keep(std::span<const i64> rows);
  // Room for n more columns; `live` says which rows' contents matter.
  void make_room(i64 n, const std::vector<bool>& live);

  // [rows, length() + more]: 1 from the row's begin on.
  std::vector<i32> mask(i64 more) const;
  // [rows, S] of the memory; empty where nothing is padding or there is no memory.
  const std::vector<i32>& memory_mask() const { return memory_mask_; }
  i64 memory_length() const;

 private:
  void resize(i64 rows, i64 columns, i64 shift, std::span<const i64> which);
  void shift(i64 columns);
  void widen_memory(i64 length);

  KvCache cache_;
  std::vector<i64> begin_;
  std::vector<i32> memory_mask_;
};

}  // namespace redco

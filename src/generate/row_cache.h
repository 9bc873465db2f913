// The cache of a batch of answers: rows can be replaced while the others continue.
//
// All rows end at the same column, length(). Row r begins at column begins()[r]; the columns before it
// are padding. So one step writes one column for all rows, whatever their lengths, and a prompt that was
// prefilled in another cache is copied to end at the same column. Columns before the first begin are freed by
// moving all rows to the left; a full cache grows. Keys already have their rotary positions, so moving them
// changes nothing. What a layer keeps, and how, is up to its LayerCache (nn/cache.h).
//
// Every rank of the mp group makes the same calls.
#pragma once

#include <span>
#include <vector>

#include "nn/cache.h"

namespace redco {

class RowCache {
 public:
  RowCache() = default;
  // One row for each entry of `begin` (and of memory_mask, [rows, S], if the model has a memory).
  RowCache(ModelCache cache, std::vector<i64> begin, std::vector<i32> memory_mask)
      : cache_(std::move(cache)), begin_(std::move(begin)), memory_mask_(std::move(memory_mask)) {}
  // Returns the cache for later use; this one is empty afterwards.
  ModelCache release();

  ModelCache& cache() { return cache_; }
  i64 rows() const { return static_cast<i64>(begin_.size()); }
  i64 length() const { return cache_.length(); }
  i64 capacity() const { return cache_.capacity(); }
  const std::vector<i64>& begins() const { return begin_; }

  // Row to[i] becomes a copy of row from[i] of `other`. Without rows, this cache gets `rows` of them first.
  void insert(const RowCache& other, std::span<const i64> from, std::span<const i64> to, i64 rows);
  // Row r becomes a copy of the former row source[r]; the two differ only in the last `columns` columns.
  void fork(std::span<const i64> source, i64 columns);
  // Keeps only these rows, in this order.
  void drop_rows(std::span<const i64> kept);
  // Makes room for n more columns; live[r]: row r is in use. Other rows become empty: their next token has
  // the first position, so that no idle row goes past the model's positions.
  void make_room(i64 n, const std::vector<bool>& live);

  // [rows, S] of the memory; empty without padding or without a memory.
  const std::vector<i32>& memory_mask() const { return memory_mask_; }
  i64 memory_length() const { return cache_.memory_length(); }

 private:
  void move(i64 by, i64 capacity);
  void insert_memory_masks(const RowCache& other, std::span<const i64> from, std::span<const i64> to,
                           i64 length_before);

  ModelCache cache_;
  std::vector<i64> begin_;
  std::vector<i32> memory_mask_;
};

}  // namespace redco

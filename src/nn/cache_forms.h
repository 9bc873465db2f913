// The forms of a layer's cache. B rows, S entries of a memory.
//
// A new form implements LayerCache (nn/cache.h) here, or next to the family that uses it.
#pragma once

#include "nn/cache.h"

namespace redco {

// Entries per token.
class ColumnCache final : public LayerCache {
 public:
  // window > 0: a query reads the entries of at most the last `window` tokens, so older ones are dropped.
  explicit ColumnCache(const CacheOptions& o, i64 window = 0)
      : dtype_(o.dtype), capacity_(o.capacity), window_(window) {}
  void append(const Tensors& entries, i64 tokens) override;
  CacheView read() const override { return {entries_, first_}; }
  void fork(std::span<const i64> source, i64 columns) override;
  void drop_rows(std::span<const i64> kept) override;
  void insert(const LayerCache& from, std::span<const RowCopy> copies, i64 rows) override;
  bool can_drop_columns(i64 from) const override { return first_ <= first_needed(from); }
  void drop_columns(i64 from) override { length_ = from; }
  void move(i64 by, i64 capacity) override;
  i64 bytes() const override;

 private:
  i64 slots() const { return entries_[0].shape()[1]; }
  i64 slots_for(i64 columns) const;
  i64 first_needed(i64 length) const;
  void rearrange(std::span<const i64> rows, i64 by, i64 first, i64 slots);

  CacheDType dtype_;
  i64 capacity_, window_;
  Tensors entries_;  // each [B, slots, ...]; slot s holds column first_ + s
  i64 first_ = 0;    // 0 without a window
};

// Entries of an encoder's output. length() is their number per row; the decoder's columns do not concern it.
class MemoryCache final : public LayerCache {
 public:
  explicit MemoryCache(const CacheOptions& o) : dtype_(o.dtype) {}
  void append(const Tensors& entries, i64 tokens) override;
  CacheView read() const override { return {entries_}; }
  // Rows that continue one prompt have the same memory.
  void fork(std::span<const i64>, i64) override {}
  void drop_rows(std::span<const i64> kept) override;
  // The other cache may have another length; this one gets the larger one.
  void insert(const LayerCache& from, std::span<const RowCopy> copies, i64 rows) override;
  bool can_drop_columns(i64) const override { return true; }
  void drop_columns(i64) override {}
  void move(i64, i64) override {}
  i64 bytes() const override;

 private:
  CacheDType dtype_;
  Tensors entries_;  // each [B, S, ...]
};

// The state of a recurrent layer: tensors [B, ...] without columns, which each append() replaces. They keep
// their type. The layer leaves a row's state unchanged on padding.
class StateCache final : public LayerCache {
 public:
  void append(const Tensors& entries, i64 tokens) override;
  CacheView read() const override { return {entries_}; }
  void fork(std::span<const i64> source, i64 columns) override {
    if (columns > 0) drop_rows(source);
  }
  void drop_rows(std::span<const i64> kept) override;
  void insert(const LayerCache& from, std::span<const RowCopy> copies, i64 rows) override;
  // A state cannot forget tokens.
  bool can_drop_columns(i64 from) const override { return from == length_; }
  void drop_columns(i64) override {}
  void move(i64 by, i64) override { length_ += by; }
  i64 bytes() const override;

 private:
  Tensors entries_;
};

}  // namespace redco

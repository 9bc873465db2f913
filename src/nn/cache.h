// What a decoder keeps between its passes: one cache per layer, behind one interface.
//
// All rows of a batch end at the same column. A pass of n tokens adds n columns to every row, whatever its
// length; the first token of a short row is at a later column, and the key mask of a pass excludes the
// padding before it. So a row can be replaced by one of another cache that ends at the same column.
//
// Forms of a layer's cache (nn/cache_forms.h):
//   ColumnCache  Entries per token: the keys and values of attention. A latent (multi-head latent attention)
//                is the same form with other entries: the compressed vector and the rotary key. A layer with
//                a sliding window keeps the columns of the window only.
//   MemoryCache  Entries of an encoder's output: written once, then read.
//   StateCache   The state of a recurrent layer: one entry per row and no columns. append() replaces it.
//   fork(),
//                drop_rows() and insert() copy rows, move() does nothing, and can_drop_columns() is false for
//                earlier columns, because a state cannot forget tokens.
// How another implements the interface:
//   pages  append() writes into the last page of each row and takes a new page from a pool when it is full.
//          read() returns the pool and the page table of the rows, for an attention op that takes the table.
//          fork() and insert() share pages and count their users; a shared page is copied before it is
//          written. The drops return pages to the pool. move() does nothing: page tables have no padding.
//
// Every rank makes the same calls. Entries may be sharded; operations on rows and columns need these whole.
// B rows, n tokens of a pass.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "nn/cache_dtype.h"
#include "tensor/node.h"
#include "tensor/tensor.h"

namespace redco {

struct CacheOptions {
  i64 capacity = 0;  // columns
  CacheDType dtype = CacheDType::fp32;
};

// What a layer reads.
struct CacheView {
  Tensors entries;
  i64 first = 0;  // the column of index 0 of the entries' dim 1; earlier columns are dropped
};

// Row `to` of a cache becomes the last `tokens` columns of row `from` of another one.
struct RowCopy {
  i64 from, to, tokens;
};

class LayerCache {
 public:
  virtual ~LayerCache() = default;
  // The number of columns.
  i64 length() const { return length_; }

  // --- For the layer ---
  // Adds `tokens` columns. entries: those of the new tokens, [B, n, ...] where the form has one per token.
  virtual void append(const Tensors& entries, i64 tokens) = 0;
  // All entries; none before the first append().
  virtual CacheView read() const = 0;

  // --- Rows ---
  // Row r becomes a copy of the former row source[r]. The two differ in the last `columns` columns only.
  virtual void fork(std::span<const i64> source, i64 columns) = 0;
  // Keeps these rows, in this order.
  virtual void drop_rows(std::span<const i64> kept) = 0;
  // Copies rows of a cache of the same form and length. If this one has no rows yet, it gets `rows` of them.
  virtual void insert(const LayerCache& from, std::span<const RowCopy> copies, i64 rows) = 0;

  // --- Columns ---
  // Drops the columns from `from` on. REQUIRES: can_drop_columns(from).
  virtual bool can_drop_columns(i64 from) const = 0;
  virtual void drop_columns(i64 from) = 0;
  // All tokens move by `by` columns; tokens that would get a negative column are dropped. Afterwards there is
  // room for `capacity` columns or more.
  virtual void move(i64 by, i64 capacity) = 0;

  virtual i64 bytes() const = 0;  // on this rank

 protected:
  i64 length_ = 0;
};

// The caches of a model's layers. Model::make_cache() makes an empty one.
class ModelCache {
 public:
  using Layers = std::vector<std::unique_ptr<LayerCache>>;

  ModelCache() = default;
  // memories: of cross-attention; empty for other models.
  ModelCache(Layers layers, Layers memories, i64 capacity)
      : layers_(std::move(layers)), memories_(std::move(memories)), capacity_(capacity) {}

  i64 length() const { return length_; }      // columns
  i64 capacity() const { return capacity_; }  // columns that there is room for
  i64 memory_length() const { return memories_.empty() ? 0 : memories_[0]->length(); }
  i64 bytes() const;
  LayerCache& layer(std::size_t i) { return *layers_[i]; }
  LayerCache& memory(std::size_t i) { return *memories_[i]; }

  // After a pass of n tokens, in which each layer has appended its entries.
  void advance(i64 n);

  // As in LayerCache, for all layers.
  void fork(std::span<const i64> source, i64 columns);
  void drop_rows(std::span<const i64> kept);
  void insert(const ModelCache& from, std::span<const RowCopy> copies, i64 rows);
  bool can_drop_columns(i64 from) const;
  void drop_columns(i64 from);
  void move(i64 by, i64 capacity);

 private:
  template <class F>
  void for_each(const F& f);

  Layers layers_, memories_;
  i64 length_ = 0, capacity_ = 0;
};

}  // namespace redco

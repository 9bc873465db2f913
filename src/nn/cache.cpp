#include "nn/cache.h"

#include <algorithm>

#include "base/error.h"

namespace redco {

template <class F>
void ModelCache::for_each(const F& f) {
  for (const auto& l : layers_) f(*l);
  for (const auto& m : memories_) f(*m);
}

i64 ModelCache::bytes() const {
  i64 n = 0;
  for (const Layers* list : {&layers_, &memories_})
    for (const auto& l : *list) n += l->bytes();
  return n;
}

void ModelCache::advance(i64 n) {
  length_ += n;
  for (std::size_t i = 0; i < layers_.size(); ++i)
    REDCO_CHECK(layers_[i]->length() == length_,
                "[cache] layer {} holds {} columns after a pass up to column {}", i, layers_[i]->length(),
                length_);
}

void ModelCache::fork(std::span<const i64> source, i64 columns) {
  for_each([&](LayerCache& l) { l.fork(source, columns); });
}

void ModelCache::drop_rows(std::span<const i64> kept) {
  for_each([&](LayerCache& l) { l.drop_rows(kept); });
}

void ModelCache::insert(const ModelCache& from, std::span<const RowCopy> copies, i64 rows) {
  REDCO_CHECK(layers_.size() == from.layers_.size() && memories_.size() == from.memories_.size(),
              "[cache] rows of {} layers are inserted into {}", from.layers_.size(), layers_.size());
  if (length_ == 0) length_ = from.length_;
  for (std::size_t i = 0; i < layers_.size(); ++i) layers_[i]->insert(*from.layers_[i], copies, rows);
  for (std::size_t i = 0; i < memories_.size(); ++i) memories_[i]->insert(*from.memories_[i], copies, rows);
}

bool ModelCache::can_drop_columns(i64 from) const {
  return std::all_of(layers_.begin(), layers_.end(),
                     [&](const auto& l) { return l->can_drop_columns(from); });
}

void ModelCache::drop_columns(i64 from) {
  for_each([&](LayerCache& l) { l.drop_columns(from); });
  length_ = from;
}

void ModelCache::move(i64 by, i64 capacity) {
  for_each([&](LayerCache& l) { l.move(by, capacity); });
  length_ += by;
  capacity_ = std::max(capacity_, capacity);
}

}  // namespace redco

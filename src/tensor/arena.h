// Arena: the memory for tensors of one rank. A best-fit allocator of offsets in one large reserved address
// range of the rank's device. Memory becomes resident only when used, so resident memory grows with the
// high-water mark. A planned (meta) rank runs the same allocations without storage and gets the same
// high-water mark.
//
// Work that is submitted to the queue later may reuse memory that was just freed here: it runs after the
// work that used it before. One rank's thread uses an arena; another thread may call free().
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/types.h"
#include "kernels/queue.h"

namespace redco {

class Arena {
 public:
  // Of a planned rank: only bookkeeping.
  explicit Arena(std::shared_ptr<Queue> queue);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  static constexpr i64 kAlign = 64;
  static i64 rounded(i64 bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

  // Returns the offset. Throws Error(doesnt_fit) if the machine's memory is exhausted.
  i64 allocate(i64 bytes);
  void free(i64 offset, i64 bytes);
  // The address of an offset; on a planned rank, one that nothing can read.
  DevicePtr at(i64 offset) const { return base_.plus(offset); }

  bool is_planned() const { return !queue_->runs(); }

  i64 in_use() const { return in_use_; }
  i64 peak_in_use() const { return peak_in_use_; }
  i64 high_water() const { return high_water_; }  // largest offset ever used: the resident memory
  i64 allocations() const { return allocations_; }

 private:
  struct Hole {
    i64 offset, bytes;
  };
  // Sorted vectors: holes are few, and a tree's nodes cost more than to move them.
  using Holes = std::vector<Hole>;
  Holes::iterator from(i64 offset);        // the first hole from here on, in by_offset_
  Holes::iterator of_size(const Hole& h);  // the place of a hole in by_size_
  void change(Holes::iterator hole, const Hole& now);
  void erase(Holes::iterator hole);
  void insert_free(i64 offset, i64 bytes);
  std::mutex mutex_;
  const std::shared_ptr<Queue> queue_;
  DevicePtr base_;
  i64 reserved_ = 0;
  i64 end_ = 0;  // all bytes from here on are free
  i64 in_use_ = 0, peak_in_use_ = 0, high_water_ = 0, allocations_ = 0;
  Holes by_offset_;  // the holes below end_; no two touch, and none touches end_
  Holes by_size_;    // the same by bytes, then by offset
};

}  // namespace redco

// Which examples a step takes: the order of an epoch, or one that puts examples of about one length together.
#pragma once

#include <array>
#include <vector>

#include "data/epoch_order.h"
#include "train/pipeline.h"

namespace redco {

// A permutation of an epoch's positions, in pure arithmetic on the order and the data's lengths: the same on
// every rank, and nothing to be restored. Not thread-safe.
//
// Grouped (version 1): the epoch's order falls into pools of 64 batches. A pool's examples are sorted by
// length + target_length, the longest first, those of one length as they come; its whole batches then are
// taken in the EpochOrder of (number of batches, seed, epoch x 2^32 + pool), what is left of
// the last pool behind them. So batches still come in any order of lengths, and an epoch differs from the
// next.
class StepOrder {
 public:
  // `data` must outlive it. With grouped, `batch` is the global batch size.
  StepOrder(const Dataset& data, u64 seed, u64 epoch, bool grouped, i64 batch);
  i64 at(i64 position) const;

 private:
  static constexpr i64 kPool = 64;  // batches
  const std::vector<i64>& pool(i64 number) const;

  const Dataset* data_;
  EpochOrder order_;
  u64 seed_, epoch_;
  i64 batch_;  // 0: not grouped
  // The pools of this step and the next.
  struct Pool {
    i64 number = -1;
    std::vector<i64> examples;
  };
  mutable std::array<Pool, 2> pools_;
};

}  // namespace redco

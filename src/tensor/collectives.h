// Collectives on the memory of tensors. They are submitted to the queue, so they run after the kernels that
// write what is sent, and before the kernels that read what is received. Sizes are checked by the callers
// (ops/redistribute.cpp); all ranks of the axis submit the same collectives in the same order.
#pragma once

#include <vector>

#include "tensor/context.h"

namespace redco {

class Collectives {
 public:
  explicit Collectives(Axis axis) : c_(Context::current()), group_(*c_.axis_[axis.index()]) {}

  // In place: the sums, or the maxima, over the ranks.
  void all_reduce(const View& data, bool max = false);
  // recv gets counts[r] bytes from rank r, in rank order. `send` may be this rank's block inside recv.
  void all_gather(const View& send, const View& recv, std::vector<i64> counts);
  // Block r of `send`, counts[r] elements, is summed over all ranks on rank r.
  void reduce_scatter(const View& send, const View& recv, std::vector<i64> counts);
  // Blocks of bytes in rank order: send_counts[r] go to rank r, recv_counts[r] come from it.
  void all_to_all(const View& send, std::vector<i64> send_counts, const View& recv,
                  std::vector<i64> recv_counts);

 private:
  Context& c_;
  Group& group_;
};

}  // namespace redco

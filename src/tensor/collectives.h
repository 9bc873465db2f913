// Collectives on the memory of tensors. They are submitted to the queue, so they run after the kernels that
// write what is sent, and before the kernels that read what is received. Sizes are checked by the callers
// (ops/redistribute.cpp); all ranks of the axis submit the same collectives in the same order.
//
// start_... submits only the start; what is submitted before Pending::wait() runs while the data moves. The
// caller keeps the tensors alive until then, does not write what is sent, and does not read what is received.
#pragma once

#include <memory>
#include <vector>

#include "tensor/context.h"

namespace redco {

// A collective that was started; empty: none.
class Pending {
 public:
  Pending() = default;
  Pending(Pending&&) = default;
  Pending& operator=(Pending&& o) noexcept {
    drop();
    queue_ = std::move(o.queue_);
    started_ = std::move(o.started_);
    return *this;
  }
  // Without a wait(), because an exception passes: gives the call up, in the order of the queue.
  ~Pending() { drop(); }

  // Submits the wait: what is submitted afterwards finds the call complete. Does nothing if it is empty; it
  // is empty afterwards.
  void wait();
  explicit operator bool() const { return started_ != nullptr; }

 private:
  friend class Collectives;
  void drop() noexcept;
  std::shared_ptr<Queue> queue_;
  std::shared_ptr<Started> started_;
};

class Collectives {
 public:
  explicit Collectives(Axis axis) : c_(Context::current()), group_(*c_.axis_[axis.index()]) {}

  // In place: the sums, or the maxima, over the ranks.
  void all_reduce(const View& data, bool max = false);
  [[nodiscard]] Pending start_all_reduce(const View& data, bool max = false);
  // recv gets counts[r] bytes from rank r, in rank order. `send` may be this rank's block inside recv.
  void all_gather(const View& send, const View& recv, std::vector<i64> counts);
  [[nodiscard]] Pending start_all_gather(const View& send, const View& recv, std::vector<i64> counts);
  // Block r of `send`, counts[r] elements, is summed over all ranks on rank r.
  void reduce_scatter(const View& send, const View& recv, std::vector<i64> counts);
  [[nodiscard]] Pending start_reduce_scatter(const View& send, const View& recv, std::vector<i64> counts);
  // Blocks of bytes in rank order: send_counts[r] go to rank r, recv_counts[r] come from it.
  void all_to_all(const View& send, std::vector<i64> send_counts, const View& recv,
                  std::vector<i64> recv_counts);
  [[nodiscard]] Pending start_all_to_all(const View& send, std::vector<i64> send_counts, const View& recv,
                                         std::vector<i64> recv_counts);

  // Blocks that lie in many places, such as those of many tensors: one call for all. A block is a list of
  // contiguous views, in this order; block r has the same number of elements on all ranks.
  // recv[r] gets what rank r sends.
  [[nodiscard]] Pending start_all_gather(const Views& send, const std::vector<Views>& recv);
  // send[r] is summed over all ranks on rank r. The views have one floating type.
  [[nodiscard]] Pending start_reduce_scatter(const std::vector<Views>& send, const Views& recv);

  // A contiguous view to one rank of the axis, or from it.
  [[nodiscard]] Pending start_send(const View& data, int to);
  [[nodiscard]] Pending start_receive(const View& data, int from);

 private:
  // f starts the call, with the native addresses of `memory`.
  template <class F, class... M>
  void run(F f, const M&... memory);
  template <class F, class... M>
  Pending start(F f, const M&... memory);
  Context& c_;
  Group& group_;
};

}  // namespace redco

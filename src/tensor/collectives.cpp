#include "tensor/collectives.h"

#include "base/error.h"
#include "tensor/tensor.h"

namespace redco {

void Collectives::all_reduce(const View& data, bool max) {
  c_.queue().communicate(
      [&g = group_, type = data.dtype, n = data.numel(), max](void* p) {
        const auto reduce = [&]<class T>(T* values) {
          max ? g.all_reduce_max<T>(values, n) : g.all_reduce<T>(values, n);
        };
        if (type == DType::i32) return reduce(static_cast<i32*>(p));
        visit_float(type, [&](auto zero) { reduce(static_cast<decltype(zero)*>(p)); });
      },
      data.data);
}

// Data that is moved but not added is treated as bytes, so elements may have any size.
void Collectives::all_gather(const View& send, const View& recv, std::vector<i64> counts) {
  c_.queue().communicate(
      [&g = group_, counts = std::move(counts)](void* from, void* to) {
        g.all_gather<std::byte>(static_cast<std::byte*>(from), static_cast<std::byte*>(to), counts);
      },
      send.data, recv.data);
}

void Collectives::reduce_scatter(const View& send, const View& recv, std::vector<i64> counts) {
  c_.queue().communicate(
      [&g = group_, type = send.dtype, counts = std::move(counts)](void* from, void* to) {
        visit_float(type, [&](auto zero) {
          using T = decltype(zero);
          g.reduce_scatter<T>(static_cast<T*>(from), static_cast<T*>(to), counts);
        });
      },
      send.data, recv.data);
}

void Collectives::all_to_all(const View& send, std::vector<i64> send_counts, const View& recv,
                             std::vector<i64> recv_counts) {
  c_.queue().communicate(
      [&g = group_, send_counts = std::move(send_counts), recv_counts = std::move(recv_counts)](void* from,
                                                                                                void* to) {
        g.all_to_all<std::byte>(static_cast<std::byte*>(from), send_counts, static_cast<std::byte*>(to),
                                recv_counts);
      },
      send.data, recv.data);
}

}  // namespace redco

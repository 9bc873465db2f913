#include "tensor/collectives.h"

#include "base/error.h"
#include "tensor/send_elements.h"
#include "tensor/tensor.h"

namespace redco {

namespace {

// These start a call of a group; the addresses are known when the queue runs it.

auto all_reduce_of(Group& g, const View& data, bool max) {
  return [&g, type = data.dtype, n = data.numel(), max](void* p) {
    const auto reduce = [&]<class T>(T* values) {
      return max ? g.start_all_reduce_max<T>(values, n) : g.start_all_reduce<T>(values, n);
    };
    if (type == DType::i32) return reduce(static_cast<i32*>(p));
    return visit_float(type, [&](auto zero) { return reduce(static_cast<decltype(zero)*>(p)); });
  };
}

// Data that is moved but not added is treated as bytes, so elements may have any size.
auto all_gather_of(Group& g, std::vector<i64> counts) {
  return [&g, counts = std::move(counts)](void* from, void* to) {
    return g.start_all_gather<std::byte>(static_cast<std::byte*>(from), static_cast<std::byte*>(to), counts);
  };
}

auto reduce_scatter_of(Group& g, DType type, std::vector<i64> counts) {
  return [&g, type, counts = std::move(counts)](void* from, void* to) {
    return visit_float(type, [&](auto zero) {
      using T = decltype(zero);
      return g.start_reduce_scatter<T>(static_cast<T*>(from), static_cast<T*>(to), counts);
    });
  };
}

auto all_to_all_of(Group& g, std::vector<i64> send_counts, std::vector<i64> recv_counts) {
  return
      [&g, send_counts = std::move(send_counts), recv_counts = std::move(recv_counts)](void* from, void* to) {
        return g.start_all_to_all<std::byte>(static_cast<std::byte*>(from), send_counts,
                                             static_cast<std::byte*>(to), recv_counts);
      };
}

// Lists of views as lists of sizes, and their memory in one list.
struct Sizes {
  std::vector<std::vector<i64>> blocks;
  std::vector<DevicePtr> memory;
  void add(const Views& views, bool bytes) {
    std::vector<i64>& sizes = blocks.emplace_back();
    for (const View& v : views) {
      REDCO_CHECK(v.strides.empty(), "a view that is sent or received is not row-major");
      sizes.push_back(bytes ? v.bytes() : v.numel());
      memory.push_back(v.data);
    }
  }
  // The segments of a block; `at` counts the addresses that are used.
  template <class T>
  Segments<T> segments(std::size_t block, const std::vector<void*>& addresses, std::size_t& at) const {
    Segments<T> out;
    for (const i64 n : blocks[block]) out.push_back({static_cast<T*>(addresses[at++]), n});
    return out;
  }
};

}  // namespace

void Pending::wait() {
  const auto started = std::move(started_);
  if (!started) return;
  if (CallVisitor* const v = queue_->visitor()) v->waits(started.get());
  queue_->communicate([started] { started->wait(); });
}

void Pending::drop() noexcept {
  if (!started_) return;
  try {
    queue_->communicate([started = std::move(started_)] {});  // it ends where the queue's calls run
  } catch (...) {                                             // NOLINT: the queue has failed, and reports it
  }
}

template <class F, class... M>
void Collectives::run(F f, const M&... memory) {
  c_.queue().communicate([f = std::move(f)](const auto&... addresses) { f(addresses...).wait(); }, memory...);
}

template <class F, class... M>
Pending Collectives::start(F f, const M&... memory) {
  Pending p;
  p.queue_ = c_.queue_;
  p.started_ = std::make_shared<Started>();
  if (CallVisitor* const v = p.queue_->visitor()) v->starts(p.started_.get());
  c_.queue().communicate(
      [f = std::move(f), started = p.started_](const auto&... addresses) { *started = f(addresses...); },
      memory...);
  return p;
}

void Collectives::all_reduce(const View& data, bool max) { run(all_reduce_of(group_, data, max), data.data); }
Pending Collectives::start_all_reduce(const View& data, bool max) {
  return start(all_reduce_of(group_, data, max), data.data);
}

void Collectives::all_gather(const View& send, const View& recv, std::vector<i64> counts) {
  run(all_gather_of(group_, std::move(counts)), send.data, recv.data);
}
Pending Collectives::start_all_gather(const View& send, const View& recv, std::vector<i64> counts) {
  return start(all_gather_of(group_, std::move(counts)), send.data, recv.data);
}

void Collectives::reduce_scatter(const View& send, const View& recv, std::vector<i64> counts) {
  run(reduce_scatter_of(group_, send.dtype, std::move(counts)), send.data, recv.data);
}
Pending Collectives::start_reduce_scatter(const View& send, const View& recv, std::vector<i64> counts) {
  return start(reduce_scatter_of(group_, send.dtype, std::move(counts)), send.data, recv.data);
}

void Collectives::all_to_all(const View& send, std::vector<i64> send_counts, const View& recv,
                             std::vector<i64> recv_counts) {
  run(all_to_all_of(group_, std::move(send_counts), std::move(recv_counts)), send.data, recv.data);
}
Pending Collectives::start_all_to_all(const View& send, std::vector<i64> send_counts, const View& recv,
                                      std::vector<i64> recv_counts) {
  return start(all_to_all_of(group_, std::move(send_counts), std::move(recv_counts)), send.data, recv.data);
}

Pending Collectives::start_all_gather(const Views& send, const std::vector<Views>& recv) {
  Sizes sizes;
  sizes.add(send, true);
  for (const Views& v : recv) sizes.add(v, true);
  const auto memory = std::move(sizes.memory);
  return start(
      [&g = group_, sizes = std::move(sizes)](const std::vector<void*>& addresses) {
        std::size_t at = 0;
        const auto from = sizes.segments<std::byte>(0, addresses, at);
        std::vector<Segments<std::byte>> to;
        for (std::size_t r = 1; r < sizes.blocks.size(); ++r)
          to.push_back(sizes.segments<std::byte>(r, addresses, at));
        return g.start_all_gather<std::byte>(from, to);
      },
      memory);
}

Pending Collectives::start_reduce_scatter(const std::vector<Views>& send, const Views& recv) {
  DType type = DType::f32;
  for (const Views& block : send)
    for (const View& v : block) type = v.dtype;
  for (const Views& block : send)
    for (const View& v : block)
      REDCO_CHECK(v.dtype == type, "reduce_scatter of {} and {}", name_of(v.dtype), name_of(type));
  Sizes sizes;
  for (const Views& v : send) sizes.add(v, false);
  sizes.add(recv, false);
  const auto memory = std::move(sizes.memory);
  return start(
      [&g = group_, type, sizes = std::move(sizes)](const std::vector<void*>& addresses) {
        return visit_float(type, [&](auto zero) {
          using T = decltype(zero);
          std::size_t at = 0;
          std::vector<Segments<T>> from;
          for (std::size_t r = 0; r + 1 < sizes.blocks.size(); ++r)
            from.push_back(sizes.segments<T>(r, addresses, at));
          return g.start_reduce_scatter<T>(from, sizes.segments<T>(sizes.blocks.size() - 1, addresses, at));
        });
      },
      memory);
}

Pending Collectives::start_send(const View& data, int to) {
  return start([&g = group_, n = data.bytes(), to](void* p) { return g.start_send(p, n, to); }, data.data);
}
Pending Collectives::start_receive(const View& data, int from) {
  return start([&g = group_, n = data.bytes(), from](void* p) { return g.start_receive(p, n, from); },
               data.data);
}

void send_elements(const Tensor& from, i64 first, i64 n, Group& group, int to) {
  REDCO_CHECK(from.dtype() == DType::f32 && first >= 0 && first + n <= from.local_numel(),
              "elements [{}, {}) of {}", first, first + n, describe(from));
  Queue& queue = Context::current().queue();
  const i64 size = size_of(DType::f32);
  queue.communicate([&group, to, bytes = n * size](void* data) { group.send(data, bytes, to); },
                    from.view().data.plus(first * size));
  queue.wait();
}

}  // namespace redco

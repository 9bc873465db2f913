#include "comm/group.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "comm/calls.h"
#include "comm/sums.h"

namespace redco {

namespace {

// Buffers up to this size (times the number of ranks) are sent whole to all ranks: one round of messages
// instead of two.
constexpr i64 kWholeBytes = i64{64} << 10;

i64 sum_of(std::span<const i64> counts) {
  i64 n = 0;
  for (i64 c : counts) {
    REDCO_CHECK(c >= 0, "the count {} is negative", c);
    n += c;
  }
  return n;
}

// A hash of the sizes of a call (FNV-1a).
u32 hash_of(std::span<const i64> sizes) {
  u64 h = 0xcbf29ce484222325ull;
  for (const i64 n : sizes) h = (h ^ static_cast<u64>(n)) * 0x100000001b3ull;
  return static_cast<u32>(h >> 32);
}

template <class T>
std::byte* bytes_of(const T* p, i64 offset) {
  return reinterpret_cast<std::byte*>(const_cast<T*>(p + offset));  // a call does not write what it sends
}

template <class T, class Op>
void sum_of_terms(const Term* terms, int n_ranks, std::byte* out, i64 begin, i64 end) {
  combine(terms, n_ranks, reinterpret_cast<T*>(out), begin, end, Op{});
}

}  // namespace

const char* name_of(Collective c) {
  switch (c) {
    case Collective::all_reduce:
      return "all_reduce";
    case Collective::all_gather:
      return "all_gather";
    case Collective::reduce_scatter:
      return "reduce_scatter";
    case Collective::all_to_all:
      return "all_to_all";
    case Collective::broadcast:
      return "broadcast";
    case Collective::barrier:
      return "barrier";
    case Collective::split:
      return "split";
    case Collective::send:
      return "send";
    case Collective::receive:
      return "receive";
  }
  return "?";
}

void Started::wait() {
  if (Call* const call = std::exchange(call_, nullptr)) calls_->wait(*call);
}
void Started::give_up() noexcept {
  if (Call* const call = std::exchange(call_, nullptr)) calls_->give_up(*call);
}

Group::Group(int rank, int size, bool meta, std::unique_ptr<Transport> transport,
             std::shared_ptr<InFlight> in_flight, const std::vector<int>& host_of)
    : rank_(rank), size_(size), meta_(meta), in_flight_(std::move(in_flight)) {
  if (transport) calls_ = std::make_unique<Calls>(rank, host_of, std::move(transport), in_flight_);
}
Group::~Group() = default;

std::vector<HostTraffic> Group::sent_to_hosts() const {
  return calls_ ? calls_->traffic : std::vector<HostTraffic>();
}
void Group::reset_counts() {
  counts_ = {};
  if (calls_) std::fill(calls_->traffic.begin(), calls_->traffic.end(), HostTraffic());
}

double Group::seconds_waiting() const { return calls_ ? calls_->seconds_waiting() : 0; }
void Group::on_call(OnCall f) {
  if (calls_) {
    calls_->on_call = std::move(f);
  } else if (meta_) {
    on_planned_ = std::move(f);
  }
}

void Group::count(Collective c, i64 bytes) {
  CommCount& k = counts_[static_cast<std::size_t>(c)];
  k.calls++;
  k.bytes += bytes;
  if (on_planned_) on_planned_(c, bytes, {});
}

template <class T>
Started Group::reduce(T* data, i64 n, void (*sum)(const Term*, int, std::byte*, i64, i64)) {
  REDCO_CHECK(n >= 0, "all_reduce of {} elements", n);
  if (size_ == 1) return {};
  const i64 bytes = n * static_cast<i64>(sizeof(T));
  count(Collective::all_reduce, bytes);
  if (meta_ || n == 0) return {};
  Call& c = calls_->make(Collective::all_reduce,
                         bytes * size_ <= kWholeBytes ? Pattern::sum_whole : Pattern::sum_slices, bytes);
  c.data = bytes_of(data, 0);
  c.n = n;
  c.elem = sizeof(T);
  c.sum = sum;
  c.sizes = hash_of({&n, 1});
  return calls_->start(c);
}

template <class T>
Started Group::start_all_reduce(T* data, i64 n) {
  return reduce(data, n, sum_of_terms<T, Add>);
}

template <class T>
Started Group::start_all_reduce_max(T* data, i64 n) {
  return reduce(data, n, sum_of_terms<T, Max>);
}

template <class T>
Started Group::start_all_gather(const T* send, T* recv, std::span<const i64> counts) {
  REDCO_CHECK(std::ssize(counts) == size_, "all_gather with {} counts on {} ranks", counts.size(), size_);
  const i64 elem = sizeof(T), bytes = sum_of(counts) * elem;
  if (size_ > 1) count(Collective::all_gather, bytes);
  if (meta_ || bytes == 0) return {};
  i64 own = 0;
  for (int r = 0; r < rank_; ++r) own += counts[r];
  if (counts[rank_] > 0 && recv + own != send)
    std::memcpy(recv + own, send, static_cast<std::size_t>(counts[rank_] * elem));
  if (size_ == 1) return {};
  Call& c = calls_->make(Collective::all_gather, Pattern::gather, bytes);
  i64 at = 0;
  for (int r = 0; r < size_; at += counts[r++]) c.in.add_block(bytes_of(recv, at), counts[r] * elem);
  c.elem = elem;
  c.sizes = hash_of(counts);
  return calls_->start(c);
}

template <class T>
Started Group::start_reduce_scatter(const T* send, T* recv, std::span<const i64> counts) {
  REDCO_CHECK(std::ssize(counts) == size_, "reduce_scatter with {} counts on {} ranks", counts.size(), size_);
  const i64 elem = sizeof(T), bytes = sum_of(counts) * elem;
  if (size_ > 1) count(Collective::reduce_scatter, bytes);
  if (meta_ || bytes == 0) return {};
  if (size_ == 1) {
    if (send != recv) std::memcpy(recv, send, static_cast<std::size_t>(bytes));
    return {};
  }
  Call& c = calls_->make(Collective::reduce_scatter, Pattern::sum_blocks, bytes);
  i64 at = 0;
  for (int r = 0; r < size_; at += counts[r++]) c.out.add_block(bytes_of(send, at), counts[r] * elem);
  c.in.add_block(bytes_of(recv, 0), counts[rank_] * elem);
  c.elem = elem;
  c.sum = sum_of_terms<T, Add>;
  c.sizes = hash_of(counts);
  return calls_->start(c);
}

template <class T>
Started Group::start_all_to_all(const T* send, std::span<const i64> send_counts, T* recv,
                                std::span<const i64> recv_counts) {
  REDCO_CHECK(std::ssize(send_counts) == size_ && std::ssize(recv_counts) == size_,
              "all_to_all with {} and {} counts on {} ranks", send_counts.size(), recv_counts.size(), size_);
  REDCO_CHECK(send_counts[rank_] == recv_counts[rank_],
              "all_to_all: rank {} sends {} elements to itself but expects {}", rank_, send_counts[rank_],
              recv_counts[rank_]);
  const i64 elem = sizeof(T), bytes = sum_of(send_counts) * elem;
  sum_of(recv_counts);
  if (size_ > 1) count(Collective::all_to_all, bytes);
  if (meta_) return {};
  Call* const c = size_ > 1 ? &calls_->make(Collective::all_to_all, Pattern::blocks, bytes) : nullptr;
  for (i64 r = 0, s = 0, d = 0; r < size_; s += send_counts[r], d += recv_counts[r], r++) {
    if (c) c->out.add_block(bytes_of(send, s), send_counts[r] * elem);
    if (c) c->in.add_block(bytes_of(recv, d), recv_counts[r] * elem);
    if (r == rank_ && send_counts[r] && recv + d != send + s)
      std::memcpy(recv + d, send + s, static_cast<std::size_t>(send_counts[r] * elem));
  }
  return c ? calls_->start(*c) : Started();
}

namespace {

template <class T>
i64 length_of(const Segments<T>& segments) {
  i64 n = 0;
  for (const Segment<T>& r : segments) {
    REDCO_CHECK(r.n >= 0, "a segment of {} elements", r.n);
    n += r.n;
  }
  return n;
}

template <class T>
std::vector<i64> lengths_of(const std::vector<Segments<T>>& blocks) {
  std::vector<i64> n;
  for (const Segments<T>& b : blocks) n.push_back(length_of(b));
  return n;
}

template <class T>
void add_block(Blocks& to, const Segments<T>& segments) {
  for (const Segment<T>& r : segments) to.add(bytes_of(r.data, 0), r.n * static_cast<i64>(sizeof(T)));
  to.end_block();
}

// Copies segments of the same length in total that may be cut in other places.
template <class T>
void copy(const Segments<T>& from, const Segments<T>& to) {
  std::size_t i = 0, j = 0;
  for (i64 a = 0, b = 0; i < from.size() && j < to.size();) {
    const i64 n = std::min(from[i].n - a, to[j].n - b);
    if (n > 0 && from[i].data + a != to[j].data + b)
      std::memcpy(to[j].data + b, from[i].data + a, static_cast<std::size_t>(n) * sizeof(T));
    a += n;
    b += n;
    if (a == from[i].n) ++i, a = 0;
    if (b == to[j].n) ++j, b = 0;
  }
}

}  // namespace

template <class T>
Started Group::start_all_gather(const Segments<T>& send, const std::vector<Segments<T>>& recv) {
  const std::vector<i64> counts = lengths_of(recv);
  REDCO_CHECK(std::ssize(counts) == size_, "all_gather of {} blocks on {} ranks", counts.size(), size_);
  REDCO_CHECK(length_of(send) == counts[rank_],
              "all_gather: rank {} sends {} elements, but expects {} of itself", rank_, length_of(send),
              counts[rank_]);
  const i64 bytes = sum_of(counts) * static_cast<i64>(sizeof(T));
  if (size_ > 1) count(Collective::all_gather, bytes);
  if (meta_ || bytes == 0) return {};
  copy(send, recv[rank_]);
  if (size_ == 1) return {};
  Call& c = calls_->make(Collective::all_gather, Pattern::gather, bytes);
  for (const Segments<T>& r : recv) add_block(c.in, r);
  c.elem = sizeof(T);
  c.sizes = hash_of(counts);
  return calls_->start(c);
}

template <class T>
Started Group::start_reduce_scatter(const std::vector<Segments<T>>& send, const Segments<T>& recv) {
  const std::vector<i64> counts = lengths_of(send);
  REDCO_CHECK(std::ssize(counts) == size_, "reduce_scatter of {} blocks on {} ranks", counts.size(), size_);
  REDCO_CHECK(length_of(recv) == counts[rank_],
              "reduce_scatter: rank {} has {} elements in its block, but expects {}", rank_, counts[rank_],
              length_of(recv));
  const i64 bytes = sum_of(counts) * static_cast<i64>(sizeof(T));
  if (size_ > 1) count(Collective::reduce_scatter, bytes);
  if (meta_ || bytes == 0) return {};
  if (size_ == 1) {
    copy(send[0], recv);
    return {};
  }
  Call& c = calls_->make(Collective::reduce_scatter, Pattern::sum_blocks, bytes);
  for (const Segments<T>& r : send) add_block(c.out, r);
  add_block(c.in, recv);
  c.elem = sizeof(T);
  c.sum = sum_of_terms<T, Add>;
  c.sizes = hash_of(counts);
  return calls_->start(c);
}

Started Group::start_send(const void* data, i64 bytes, int to) {
  REDCO_CHECK(to >= 0 && to < size_ && to != rank_, "rank {} of {} sends to rank {}", rank_, size_, to);
  REDCO_CHECK(bytes >= 0, "send of {} bytes", bytes);
  count(Collective::send, bytes);
  if (meta_) return {};
  Call& c = calls_->make(Collective::send, Pattern::one_way, bytes);
  c.out.add_block(bytes_of(static_cast<const std::byte*>(data), 0), bytes);
  c.root = to;
  return calls_->start(c);
}

Started Group::start_receive(void* data, i64 bytes, int from) {
  REDCO_CHECK(from >= 0 && from < size_ && from != rank_, "rank {} of {} receives from rank {}", rank_, size_,
              from);
  REDCO_CHECK(bytes >= 0, "receive of {} bytes", bytes);
  count(Collective::receive, bytes);
  if (meta_) return {};
  Call& c = calls_->make(Collective::receive, Pattern::one_way, bytes);
  c.in.add_block(static_cast<std::byte*>(data), bytes);
  c.root = from;
  return calls_->start(c);
}

// Moves the bytes; does not count.
void Group::copy_from(int root, void* data, i64 bytes) {
  Call& c = calls_->make(Collective::broadcast,
                         bytes * size_ <= kWholeBytes ? Pattern::copy_whole : Pattern::copy_slices, bytes);
  c.data = static_cast<std::byte*>(data);
  c.n = bytes;
  c.elem = 1;
  c.root = root;
  const i64 sizes[] = {bytes, root};
  c.sizes = hash_of(sizes);
  calls_->start(c).wait();
}

void Group::broadcast_bytes(void* data, i64 bytes, int root) {
  REDCO_CHECK(root >= 0 && root < size_, "broadcast from rank {} in a group of {}", root, size_);
  REDCO_CHECK(bytes >= 0, "broadcast of {} bytes", bytes);
  if (size_ == 1) return;
  count(Collective::broadcast, bytes);
  if (meta_ || bytes == 0) return;
  copy_from(root, data, bytes);
}

void Group::barrier() {
  if (size_ == 1) return;
  count(Collective::barrier, 0);
  if (meta_) return;
  calls_->start(calls_->make(Collective::barrier, Pattern::token, 0)).wait();
}

std::unique_ptr<Group> Group::split(int color) {
  REDCO_CHECK(color >= 0, "split with the negative color {}", color);
  REDCO_CHECK(!meta_, "a meta group does not know the other ranks' colors; use split_by");
  if (size_ == 1) return make_self_group();
  REDCO_CHECK(in_flight_->none(), "split while calls of this rank are in flight; wait for them first");
  std::vector<i32> colors(static_cast<std::size_t>(size_), color);
  Call& c = calls_->make(Collective::split, Pattern::blocks, 0);
  for (int r = 0; r < size_; ++r) {
    c.out.add_block(bytes_of(colors.data(), rank_), sizeof color);
    c.in.add_block(bytes_of(colors.data(), r), sizeof color);
  }
  calls_->start(c).wait();
  const int rank = static_cast<int>(std::count(colors.begin(), colors.begin() + rank_, color));
  std::vector<int> host_of;
  for (int r = 0; r < size_; ++r)
    if (colors[r] == color) host_of.push_back(calls_->hosts().host_of(r));
  const int size = static_cast<int>(host_of.size());
  return std::make_unique<Group>(rank, size, false, calls_->transport().split(colors), in_flight_, host_of);
}

std::unique_ptr<Group> Group::split_by(const std::function<int(int rank)>& color_of) {
  const int mine = color_of(rank_);
  if (!meta_) return split(mine);
  int rank = 0, size = 0;
  for (int r = 0; r < size_; r++) {
    if (color_of(r) != mine) continue;
    if (r < rank_) rank++;
    size++;
  }
  return make_meta_group(rank, size);
}

std::unique_ptr<Group> make_self_group() {
  return std::make_unique<Group>(0, 1, false, nullptr, std::make_shared<InFlight>());
}

std::unique_ptr<Group> make_meta_group(int rank, int size) {
  REDCO_CHECK(size >= 1 && rank >= 0 && rank < size, "rank {} of {} planned ranks", rank, size);
  return std::make_unique<Group>(rank, size, true, nullptr, std::make_shared<InFlight>());
}

#define REDCO_INSTANTIATE_MOVES(T)                                                                  \
  template Started Group::start_all_gather<T>(const T*, T*, std::span<const i64>);                  \
  template Started Group::start_all_gather<T>(const Segments<T>&, const std::vector<Segments<T>>&); \
  template Started Group::start_all_to_all<T>(const T*, std::span<const i64>, T*, std::span<const i64>);
#define REDCO_INSTANTIATE(T)                                                                            \
  template Started Group::start_all_reduce<T>(T*, i64);                                                 \
  template Started Group::start_all_reduce_max<T>(T*, i64);                                             \
  template Started Group::start_reduce_scatter<T>(const T*, T*, std::span<const i64>);                  \
  template Started Group::start_reduce_scatter<T>(const std::vector<Segments<T>>&, const Segments<T>&); \
  REDCO_INSTANTIATE_MOVES(T)
REDCO_INSTANTIATE(float)
REDCO_INSTANTIATE(double)
REDCO_INSTANTIATE(i32)
REDCO_INSTANTIATE_MOVES(std::byte)
#undef REDCO_INSTANTIATE
#undef REDCO_INSTANTIATE_MOVES

}  // namespace redco

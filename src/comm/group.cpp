#include "comm/group.h"

#include <chrono>

#include "base/error.h"
#include "comm/sums.h"

namespace redco {

namespace {
thread_local std::string t_agreed;  // the message that agree_on_errors threw last
}
bool was_agreed(const std::string& message) { return !t_agreed.empty() && t_agreed == message; }

namespace {

// Size of the staging buffer of an exchange. Pieces limit memory and keep data in cache between exchange, sum
// and gather. The sum of an element does not depend on the pieces.
constexpr i64 kPieceBytes = i64{16} << 20;
// Buffers up to this size (times the number of ranks) are sent whole to all ranks: one round of messages
// instead of two.
constexpr i64 kWholeBytes = i64{64} << 10;

// Border i of n elements split into `parts`, larger parts first.
i64 border(i64 n, i64 parts, i64 i) { return n / parts * i + std::min(i, n % parts); }

i64 sum_of(std::span<const i64> counts) {
  i64 n = 0;
  for (i64 c : counts) {
    REDCO_CHECK(c >= 0, "the count {} is negative", c);
    n += c;
  }
  return n;
}

template <class T>
std::byte* bytes_of(T* p, i64 offset) {
  return reinterpret_cast<std::byte*>(p + offset);
}
template <class T>
const std::byte* bytes_of(const T* p, i64 offset) {
  return reinterpret_cast<const std::byte*>(p + offset);
}

[[noreturn]] void throw_error(int code, const std::string& message) {
  switch (static_cast<ExitCode>(code)) {
    case ExitCode::usage:
      throw UsageError("{}", message);
    case ExitCode::contents:
      throw ContentsError("{}", message);
    case ExitCode::io:
      throw IoError("{}", message);
    case ExitCode::bug:
      throw BugError(message);
    default:
      throw Error(static_cast<ExitCode>(code), message);
  }
}

// Runs f. Returns its exception, if any, with its code and message (0 and "" if none).
std::exception_ptr run_caught(const std::function<void()>& f, int& code, std::string& message) {
  code = 0;
  try {
    f();
    return nullptr;
  } catch (...) {
    std::exception_ptr own = std::current_exception();
    try {
      throw;
    } catch (const Error& e) {
      code = static_cast<int>(e.code());
      message = e.what();
    } catch (const std::bad_alloc&) {
      code = static_cast<int>(ExitCode::doesnt_fit);
      message = "out of memory";
    } catch (const std::exception& e) {
      code = static_cast<int>(ExitCode::bug);
      message = e.what();
    } catch (...) {
      code = static_cast<int>(ExitCode::bug);
      message = "an exception of unknown type";
    }
    return own;
  }
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
  }
  return "?";
}

// Adds the duration of its scope to seconds_waiting, and reports the call.
class Group::Timed {
 public:
  Timed(Group& g, Collective kind, i64 bytes) : g_(g), kind_(kind), bytes_(bytes) {}
  ~Timed() {
    g_.seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    if (g_.on_call_ && g_.size_ > 1) g_.on_call_(kind_, bytes_, start_);
  }
  Timed(const Timed&) = delete;

 private:
  Group& g_;
  Collective kind_;
  i64 bytes_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void Group::count(Collective c, i64 bytes) {
  CommCount& k = counts_[static_cast<std::size_t>(c)];
  k.calls++;
  k.bytes += bytes;
}

std::byte* Group::staging(i64 bytes) {
  if (bytes > staging_bytes_) {
    staging_.reset();
    staging_bytes_ = 0;
    staging_.reset(new std::byte[static_cast<std::size_t>(bytes)]);
    staging_bytes_ = bytes;
  }
  return staging_.get();
}

// data[n] := op over the ranks, element by element, starting with rank 0.
template <class T, class Op>
void Group::reduce(T* data, i64 n, Op op) {
  const i64 p = size_, elem = sizeof(T);
  send_.resize(p);
  recv_.resize(p);
  std::vector<const T*> parts(p);
  if (n * elem * p <= kWholeBytes) {
    std::byte* stage = staging(n * elem * p);
    for (i64 r = 0; r < p; r++) {
      const bool own = r == rank_;
      send_[r] = {bytes_of(data, 0), own ? 0 : n * elem};
      recv_[r] = {stage + r * n * elem, own ? 0 : n * elem};
      parts[r] = own ? data : reinterpret_cast<const T*>(recv_[r].data);
    }
    do_all_to_all(Collective::all_reduce, send_, recv_);
    combine(parts.data(), static_cast<int>(p), data, n, op);
    return;
  }
  const i64 piece = kPieceBytes / elem;
  std::vector<i64> counts(p);
  for (i64 at = 0; at < n; at += piece) {
    const i64 m = std::min(piece, n - at);
    for (i64 r = 0; r < p; r++) counts[r] = border(m, p, r + 1) - border(m, p, r);
    T* own = data + at + border(m, p, rank_);
    reduce_blocks(data + at, own, counts, op);
    gather_blocks(own, data + at, counts);
  }
}

// recv[counts[rank]] := op over block `rank` of all ranks' send; in rounds, so that the blocks received
// together fit into kPieceBytes.
template <class T, class Op>
void Group::reduce_blocks(const T* send, T* recv, std::span<const i64> counts, Op op) {
  const i64 p = size_, elem = sizeof(T);
  const i64 round = kPieceBytes / elem / p + 1;  // + 1: the longest slice of a piece takes one round
  i64 longest = 0;
  for (i64 c : counts) longest = std::max(longest, c);
  std::vector<const T*> parts(p);
  send_.resize(p);
  recv_.resize(p);
  for (i64 at = 0; at < longest; at += round) {
    const i64 mine = std::clamp<i64>(counts[rank_] - at, 0, round);
    std::byte* stage = staging(mine * elem * (p - 1));
    const T* block = send;
    for (i64 r = 0, k = 0; r < p; block += counts[r], r++) {
      const bool own = r == rank_;
      const i64 theirs = std::clamp<i64>(counts[r] - at, 0, round);
      send_[r] = {bytes_of(block, theirs ? at : 0), own ? 0 : theirs * elem};
      recv_[r] = {own ? nullptr : stage + k * mine * elem, own ? 0 : mine * elem};
      parts[r] = own ? block + (mine ? at : 0) : reinterpret_cast<const T*>(recv_[r].data);
      k += !own;
    }
    do_all_to_all(Collective::reduce_scatter, send_, recv_);
    if (mine) combine(parts.data(), static_cast<int>(p), recv + at, mine, op);
  }
}

template <class T>
void Group::gather_blocks(const T* send, T* recv, std::span<const i64> counts) {
  const i64 p = size_, elem = sizeof(T);
  send_.resize(p);
  recv_.resize(p);
  i64 at = 0;
  for (i64 r = 0; r < p; at += counts[r], r++) {
    const bool own = r == rank_;
    send_[r] = {bytes_of(send, 0), own ? 0 : counts[rank_] * elem};
    recv_[r] = {bytes_of(recv, at), own ? 0 : counts[r] * elem};
    if (own && counts[r] && recv + at != send)
      std::memcpy(recv + at, send, static_cast<std::size_t>(counts[r] * elem));
  }
  do_all_to_all(Collective::all_gather, send_, recv_);
}

template <class T>
void Group::all_reduce(T* data, i64 n) {
  REDCO_CHECK(n >= 0, "all_reduce of {} elements", n);
  if (size_ == 1) return;
  count(Collective::all_reduce, n * static_cast<i64>(sizeof(T)));
  if (meta_ || n == 0) return;
  Timed timed(*this, Collective::all_reduce, n * static_cast<i64>(sizeof(T)));
  reduce(data, n, Add{});
}

template <class T>
void Group::all_reduce_max(T* data, i64 n) {
  REDCO_CHECK(n >= 0, "all_reduce_max of {} elements", n);
  if (size_ == 1) return;
  count(Collective::all_reduce, n * static_cast<i64>(sizeof(T)));
  if (meta_ || n == 0) return;
  Timed timed(*this, Collective::all_reduce, n * static_cast<i64>(sizeof(T)));
  reduce(data, n, Max{});
}

template <class T>
void Group::all_gather(const T* send, T* recv, std::span<const i64> counts) {
  REDCO_CHECK(std::ssize(counts) == size_, "all_gather with {} counts on {} ranks", counts.size(), size_);
  const i64 total = sum_of(counts);
  if (size_ > 1) count(Collective::all_gather, total * static_cast<i64>(sizeof(T)));
  if (meta_ || total == 0) return;
  if (size_ == 1) {
    if (send != recv) std::memcpy(recv, send, static_cast<std::size_t>(total) * sizeof(T));
    return;
  }
  Timed timed(*this, Collective::all_gather, total * static_cast<i64>(sizeof(T)));
  gather_blocks(send, recv, counts);
}

template <class T>
void Group::reduce_scatter(const T* send, T* recv, std::span<const i64> counts) {
  REDCO_CHECK(std::ssize(counts) == size_, "reduce_scatter with {} counts on {} ranks", counts.size(), size_);
  const i64 total = sum_of(counts);
  if (size_ > 1) count(Collective::reduce_scatter, total * static_cast<i64>(sizeof(T)));
  if (meta_ || total == 0) return;
  if (size_ == 1) {
    if (send != recv) std::memcpy(recv, send, static_cast<std::size_t>(total) * sizeof(T));
    return;
  }
  Timed timed(*this, Collective::reduce_scatter, total * static_cast<i64>(sizeof(T)));
  reduce_blocks(send, recv, counts, Add{});
}

template <class T>
void Group::all_to_all(const T* send, std::span<const i64> send_counts, T* recv,
                       std::span<const i64> recv_counts) {
  REDCO_CHECK(std::ssize(send_counts) == size_ && std::ssize(recv_counts) == size_,
              "all_to_all with {} and {} counts on {} ranks", send_counts.size(), recv_counts.size(), size_);
  REDCO_CHECK(send_counts[rank_] == recv_counts[rank_],
              "all_to_all: rank {} sends {} elements to itself but expects {}", rank_, send_counts[rank_],
              recv_counts[rank_]);
  const i64 p = size_, elem = sizeof(T), total = sum_of(send_counts);
  sum_of(recv_counts);
  if (size_ > 1) count(Collective::all_to_all, total * elem);
  if (meta_) return;
  Timed timed(*this, Collective::all_to_all, total * elem);
  send_.resize(p);
  recv_.resize(p);
  for (i64 r = 0, s = 0, d = 0; r < p; s += send_counts[r], d += recv_counts[r], r++) {
    const bool own = r == rank_;
    send_[r] = {bytes_of(send, s), own ? 0 : send_counts[r] * elem};
    recv_[r] = {bytes_of(recv, d), own ? 0 : recv_counts[r] * elem};
    if (own && send_counts[r] && recv + d != send + s)
      std::memcpy(recv + d, send + s, static_cast<std::size_t>(send_counts[r] * elem));
  }
  if (size_ > 1) do_all_to_all(Collective::all_to_all, send_, recv_);
}

void Group::broadcast_bytes(void* data, i64 bytes, int root) {
  REDCO_CHECK(root >= 0 && root < size_, "broadcast from rank {} in a group of {}", root, size_);
  REDCO_CHECK(bytes >= 0, "broadcast of {} bytes", bytes);
  if (size_ == 1) return;
  count(Collective::broadcast, bytes);
  if (meta_ || bytes == 0) return;
  Timed timed(*this, Collective::broadcast, bytes);
  do_broadcast(data, bytes, root);
}

void Group::barrier() {
  if (size_ == 1) return;
  count(Collective::barrier, 0);
  if (meta_) return;
  Timed timed(*this, Collective::barrier, 0);
  do_barrier();
}

std::string Group::agree(std::string value) {
  if (size_ == 1) return value;
  if (meta_) {
    count(Collective::broadcast, static_cast<i64>(value.size()));
    return value;
  }
  Timed timed(*this, Collective::broadcast, static_cast<i64>(value.size()));
  i64 length = static_cast<i64>(value.size());
  do_broadcast(&length, sizeof length, 0);
  value.resize(static_cast<std::size_t>(length));
  if (length) do_broadcast(value.data(), length, 0);
  count(Collective::broadcast, length);
  return value;
}

bool Group::any(bool mine) {
  i32 most = mine ? 1 : 0;
  all_reduce_max<i32>(&most, 1);
  return most != 0;
}

std::vector<std::string> Group::gather(const std::string& mine) {
  const std::vector<i64> ones(size_, 1);
  std::vector<i32> sizes(size_);
  const i32 size = static_cast<i32>(mine.size());
  all_gather<i32>(&size, sizes.data(), ones);
  std::vector<i64> words;
  i64 total = 0;
  for (const i32 n : sizes) total += words.emplace_back((n + 3) / 4);
  std::vector<i32> padded((size + 3) / 4), all(total);
  if (size > 0) std::memcpy(padded.data(), mine.data(), size);
  all_gather<i32>(padded.data(), all.data(), words);
  std::vector<std::string> out;
  const i32* p = all.data();
  for (std::size_t r = 0; r < words.size(); ++r) {
    out.emplace_back(reinterpret_cast<const char*>(p), sizes[r]);
    p += words[r];
  }
  return out;
}

// Each rank sends the code and message length of its error (0: none). All ranks get the message of the lowest
// failing rank.
void Group::agree_on_errors(const std::string& message, int code, std::exception_ptr own, bool first_only) {
  struct Status {
    i64 code, length;
  };
  const int p = size_;
  Timed timed(*this, Collective::broadcast, static_cast<i64>(message.size()));
  count(Collective::broadcast, sizeof(Status));
  std::vector<Status> all(p);
  all[rank_] = {code, static_cast<i64>(message.size())};
  if (first_only) {
    do_broadcast(all.data(), sizeof(Status), 0);
  } else {
    send_.resize(p);
    recv_.resize(p);
    for (int r = 0; r < p; r++) {
      const i64 bytes = r == rank_ ? 0 : static_cast<i64>(sizeof(Status));
      send_[r] = {bytes_of(all.data(), rank_), bytes};
      recv_[r] = {bytes_of(all.data(), r), bytes};
    }
    do_all_to_all(Collective::broadcast, send_, recv_);
  }
  const auto bad = std::find_if(all.begin(), all.end(), [](const Status& s) { return s.code != 0; });
  if (bad == all.end()) return;
  const int root = static_cast<int>(bad - all.begin());
  std::string text = root == rank_ ? message : std::string(static_cast<std::size_t>(bad->length), ' ');
  if (!text.empty()) do_broadcast(text.data(), bad->length, root);
  t_agreed = text;
  if (root == rank_) std::rethrow_exception(own);
  throw_error(static_cast<int>(bad->code), text);
}

void Group::on_first(const std::function<void()>& f) {
  if (size_ == 1 || meta_) {
    if (size_ > 1) count(Collective::broadcast, 16);
    if (rank_ == 0) f();
    return;
  }
  int code = 0;
  std::string message;
  std::exception_ptr own;
  if (rank_ == 0) own = run_caught(f, code, message);
  agree_on_errors(message, code, own, true);
}

void Group::together(const std::function<void()>& f) {
  if (size_ == 1 || meta_) {
    if (size_ > 1) count(Collective::broadcast, 16);
    f();
    return;
  }
  int code = 0;
  std::string message;
  std::exception_ptr own = run_caught(f, code, message);
  agree_on_errors(message, code, own, false);
}

std::unique_ptr<Group> Group::split_by(const std::function<int(int rank)>& color_of) {
  return split(color_of(rank_));
}

#define REDCO_INSTANTIATE_MOVES(T)                                        \
  template void Group::all_gather<T>(const T*, T*, std::span<const i64>); \
  template void Group::all_to_all<T>(const T*, std::span<const i64>, T*, std::span<const i64>);
#define REDCO_INSTANTIATE(T)                                                  \
  template void Group::all_reduce<T>(T*, i64);                                \
  template void Group::all_reduce_max<T>(T*, i64);                            \
  template void Group::reduce_scatter<T>(const T*, T*, std::span<const i64>); \
  REDCO_INSTANTIATE_MOVES(T)
REDCO_INSTANTIATE(float)
REDCO_INSTANTIATE(double)
REDCO_INSTANTIATE(i32)
REDCO_INSTANTIATE_MOVES(std::byte)
#undef REDCO_INSTANTIATE
#undef REDCO_INSTANTIATE_MOVES

}  // namespace redco

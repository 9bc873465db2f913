// Group: the ranks of one mesh axis (or of the whole job) and their collective operations.
//
// Backends: self (one rank), threads (for tests: many ranks in one process), MPI, meta (a rank of a planned
// group: counts, but moves no data). A collective over a group of one rank is the identity and is not
// counted. Every call but send and receive is collective: all ranks of the group make it in the same order. A
// Group belongs to one rank; its rank's threads may use it one after the other. If a rank fails, the call
// throws Error(rank_failed) on the others. A collective waits without a time limit; the watchdog
// (launch/watch/watchdog.h) finds ranks that are stuck or lost.
//
// A call can be started and waited for later (start_...); a call without start_ is both. Several may be in
// flight, over several groups. The order in which calls are started is the same on all ranks; they may be
// waited for in any order, and complete in any. They proceed in each wait, for whatever call and group, and
// between the pieces of long kernels (base/background.h). The memory of a call belongs to it until its wait
// has returned: nobody may write what it sends, read what it receives, or free it.
//
// redco computes sums itself, in the element's type (fp32 for f32) and along one fixed tree over the ranks of
// the group: a tree over n ranks is that of the first h plus that of the others, where h is the largest power
// of two below n. So 2 and 3 ranks are added in rank order, 4 as (0 + 1) + (2 + 3). Slices are exchanged,
// added by one rank each, and gathered. Ranks of one host first add the subtrees that lie on their host, and
// one message from host to host carries these sums (comm/hosts.h). So every rank gets the same bits, on every
// backend and placement of ranks, and whatever else is in flight. (Small buffers are sent whole and added
// everywhere: fewer messages, same order, same bits.) Memory: at most 16 MiB of staging per group, for
// buffers of any size and any number of calls in flight. Messages to ranks of the same host lie in memory
// that they share instead: at most 17 MiB of a rank for all its groups, and 64 KiB for each other rank
// (comm/host_link.h).
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/types.h"

namespace redco {

enum class Collective : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  barrier,
  split,
  send,
  receive
};
constexpr std::size_t kCollectives = 9;
const char* name_of(Collective c);

// What a group has done since the last reset. Bytes are those of the tensor passed in (all_reduce: the
// buffer; all_gather: the gathered result; reduce_scatter, all_to_all: the whole input).
struct CommCount {
  i64 calls = 0;
  i64 bytes = 0;
};

// Messages to ranks of another host.
struct HostTraffic {
  i64 messages = 0;
  i64 bytes = 0;
};

// When a call was started, when its last message and sum were done, and when this rank waited for it.
struct CallTimes {
  using Point = std::chrono::steady_clock::time_point;
  Point started, completed, wait_began, wait_ended;
};

// Contiguous elements in memory.
template <class T>
struct Segment {
  T* data = nullptr;
  i64 n = 0;
};
// Segments that together are one block of data, in this order.
template <class T>
using Segments = std::vector<Segment<T>>;

struct Call;      // comm/calls.h
struct Term;      // comm/sums.h
class Calls;      // comm/calls.h
class InFlight;   // comm/in_flight.h
class Transport;  // comm/transport.h

// A call that was started; empty: none. Must not outlive its group. wait() returns when the call is complete,
// and throws what has made it fail. One that ends without a wait (an exception passes) gives the call up: the
// group can't be used any more; each later call is an error.
class Started {
 public:
  Started() = default;
  Started(Started&& o) noexcept : calls_(o.calls_), call_(std::exchange(o.call_, nullptr)) {}
  Started& operator=(Started&& o) noexcept {
    give_up();
    calls_ = o.calls_;
    call_ = std::exchange(o.call_, nullptr);
    return *this;
  }
  ~Started() { give_up(); }

  void wait();  // does nothing if it is empty; it is empty afterwards
  explicit operator bool() const { return call_ != nullptr; }

 private:
  friend class Calls;
  Started(Calls* calls, Call* call) : calls_(calls), call_(call) {}
  void give_up() noexcept;
  Calls* calls_ = nullptr;
  Call* call_ = nullptr;
};

class Group {
 public:
  // For the backends; transport: null for one rank and for planned ranks. host_of[r] is the host of rank r.
  Group(int rank, int size, bool meta, std::unique_ptr<Transport> transport,
        std::shared_ptr<InFlight> in_flight, const std::vector<int>& host_of = {});
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool is_meta() const { return meta_; }

  // --- Collectives. T is float, double or i32; all_gather and all_to_all also move std::byte ---
  // In place: data[n] becomes the sum over ranks.
  template <class T>
  Started start_all_reduce(T* data, i64 n);
  // In place: data[n] becomes the maximum over ranks; NaN if any rank has NaN. Counted as all_reduce.
  template <class T>
  Started start_all_reduce_max(T* data, i64 n);
  // recv gets the blocks of all ranks in rank order, counts[r] elements from rank r. `send` may be this
  // rank's block inside recv, but must not overlap it otherwise.
  template <class T>
  Started start_all_gather(const T* send, T* recv, std::span<const i64> counts);
  // send has size() blocks; the block r of counts[r] elements goes to rank r, which sums them. recv has
  // counts[rank()] elements and may be this rank's block inside send.
  template <class T>
  Started start_reduce_scatter(const T* send, T* recv, std::span<const i64> counts);
  // Blocks in rank order: send_counts[r] elements go to rank r, recv_counts[r] come from it. No overlap.
  template <class T>
  Started start_all_to_all(const T* send, std::span<const i64> send_counts, T* recv,
                           std::span<const i64> recv_counts);
  // The same for blocks that lie in many places, such as those of many tensors: one call, whose messages hold
  // all segments. Each block has the same number of elements on all ranks, in segments of any sizes. The bits
  // are those of one call per segment.
  template <class T>
  Started start_all_gather(const Segments<T>& send, const std::vector<Segments<T>>& recv);
  template <class T>
  Started start_reduce_scatter(const std::vector<Segments<T>>& send, const Segments<T>& recv);

  // --- Between two ranks: not collective. The messages from one rank to another arrive in their order ---
  Started start_send(const void* data, i64 bytes, int to);
  Started start_receive(void* data, i64 bytes, int from);

  template <class T>
  void all_reduce(T* data, i64 n) {
    start_all_reduce<T>(data, n).wait();
  }
  template <class T>
  void all_reduce_max(T* data, i64 n) {
    start_all_reduce_max<T>(data, n).wait();
  }
  template <class T>
  void all_gather(const T* send, T* recv, std::span<const i64> counts) {
    start_all_gather<T>(send, recv, counts).wait();
  }
  template <class T>
  void reduce_scatter(const T* send, T* recv, std::span<const i64> counts) {
    start_reduce_scatter<T>(send, recv, counts).wait();
  }
  template <class T>
  void all_to_all(const T* send, std::span<const i64> send_counts, T* recv,
                  std::span<const i64> recv_counts) {
    start_all_to_all<T>(send, send_counts, recv, recv_counts).wait();
  }
  void send(const void* data, i64 bytes, int to) { start_send(data, bytes, to).wait(); }
  void receive(void* data, i64 bytes, int from) { start_receive(data, bytes, from).wait(); }
  void broadcast_bytes(void* data, i64 bytes, int root = 0);
  void barrier();

  // --- Agreement: for control flow, not for tensors; counted as broadcast ---
  // Every rank gets the first rank's value. T is trivially copyable.
  template <class T>
  T agree(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    broadcast_bytes(&value, sizeof value);
    return value;
  }
  std::string agree(std::string value);
  // Whether `mine` is true on at least one rank; the result is equal on every rank.
  bool any(bool mine);
  // The texts of all ranks in rank order, on every rank.
  std::vector<std::string> gather(const std::string& mine);
  // Runs f on the first rank only. If it throws, every rank throws an error with the same code and message.
  void on_first(const std::function<void()>& f);
  // Runs f on every rank. If any throws, all throw the error of the lowest failing rank (same code, same
  // message). REQUIRES: no collective in f, because a rank that throws would leave the others waiting in it.
  void together(const std::function<void()>& f);

  // Splits the group by color (>= 0); ranks keep their order. Collective. REQUIRES: no call of this rank is
  // in flight. The new group must not outlive the world it comes from. On a meta group use split_by, because
  // it does not know the other ranks' colors.
  std::unique_ptr<Group> split(int color);
  // The same if every rank knows all colors; works on every backend.
  std::unique_ptr<Group> split_by(const std::function<int(int rank)>& color_of);

  // --- Counting ---
  const CommCount& counted(Collective c) const { return counts_[static_cast<std::size_t>(c)]; }
  // What this rank has sent to ranks of other hosts since the last reset, by host. Hosts are numbered in the
  // order of their first ranks in the group. Empty: one rank, or planned.
  std::vector<HostTraffic> sent_to_hosts() const;
  void reset_counts();
  // Time that this rank has spent in starting calls and waiting for them.
  double seconds_waiting() const;
  // Called after each wait for a call that communicates; for profiles. On a planned rank: when a call is
  // submitted, without times; for plans. Null: none.
  using OnCall = std::function<void(Collective, i64 bytes, const CallTimes& times)>;
  void on_call(OnCall f);

 private:
  template <class T>
  Started reduce(T* data, i64 n, void (*sum)(const Term*, int, std::byte*, i64, i64));
  void copy_from(int root, void* data, i64 bytes);
  void agree_on_errors(const std::string& message, int code, std::exception_ptr own, bool first_only);
  void count(Collective c, i64 bytes);

  int rank_, size_;
  bool meta_;
  std::array<CommCount, kCollectives> counts_{};
  std::shared_ptr<InFlight> in_flight_;
  OnCall on_planned_;             // of a planned rank
  std::unique_ptr<Calls> calls_;  // null: one rank, or planned
};

// A group of one rank.
std::unique_ptr<Group> make_self_group();
// Rank `rank` of `size` planned ranks: counts, but moves no data; agree() returns the caller's value.
std::unique_ptr<Group> make_meta_group(int rank, int size);

// Runs `body(group)` on `size` threads, one per rank, and returns when all have ended. If ranks throw, it
// rethrows the error of the lowest rank (not the rank_failed errors that follow from it). A rank that returns
// while others wait for it in a collective is an error, not a hang. host_of: the host of each rank, which
// decides the way of messages; without it all are on one host. For tests.
void run_threads(int size, const std::function<void(Group&)>& body,
                 const std::function<int(int rank)>& host_of = {});

// The job's ranks under MPI. Initializes MPI (once, with MPI_THREAD_FUNNELED: groups belong to the main
// thread) and duplicates MPI_COMM_WORLD. Ranks that MPI has started on one host exchange messages through
// memory that they share (comm/host_link.h); if they can't, through MPI, and rank 0 logs why. host_of, for
// tests: the host of each rank, instead of what MPI knows. Groups must end before mpi_finalize(), which
// main() calls last. mpi_abort() ends all ranks with `code` and prints nothing. Both do nothing without MPI.
std::unique_ptr<Group> make_mpi_world(const std::function<int(int rank)>& host_of = {});
void mpi_finalize();
[[noreturn]] void mpi_abort(int code);
// Whether this message is that of this thread's last error from agree, on_first or together. Then every rank
// has the same error, and only one of them should print it.
bool was_agreed(const std::string& message);
bool launched_under_mpi();  // whether mpirun, or srun with PMIx and more than one task, started this process
// Under srun without PMIx (or another MPI's mpirun) every process would be rank 0 of 1 and run the whole job.
// Returns a message with problem and remedy, or "" if there is no problem. Call it before make_mpi_world(),
// because MPI_Init may end the process; it also works after that.
std::string mpi_mismatch();
// For logs and `env`: "Open MPI v4.1.4". Does not initialize MPI.
std::string mpi_version();

}  // namespace redco

// Group: the ranks of one mesh axis (or of the whole job) and their collective operations.
//
// Backends: self (one rank), threads (for tests: many ranks in one process), MPI, meta (a rank of a planned
// group: counts, but moves no data). A collective over a group of one rank is the identity and is not
// counted. Every call is collective: all ranks of the group call it in the same order. A Group belongs to one
// rank and one thread. If a rank fails, the call throws Error(rank_failed) on the others. A collective waits
// without a time limit; the watchdog (launch/watchdog.h) finds ranks that are stuck or lost.
//
// redco computes sums itself, in rank order and in the element's type (fp32 for f32): slices are exchanged,
// added starting with rank 0, and gathered. So every rank gets the same bits, on every backend and placement
// of ranks. (Small buffers are sent whole to all ranks and added everywhere: fewer messages, same order, same
// bits.) Memory: at most 16 MiB of staging per group, for buffers of any size.
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
#include <vector>

#include "base/types.h"

namespace redco {

enum class Collective : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  barrier
};
const char* name_of(Collective c);

// What a group has done since the last reset. Bytes are those of the tensor passed in (all_reduce: the
// buffer; all_gather: the gathered result; reduce_scatter, all_to_all: the whole input).
struct CommCount {
  i64 calls = 0;
  i64 bytes = 0;
};

class Group {
 public:
  virtual ~Group() = default;

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool is_meta() const { return meta_; }

  // --- Collectives. T is float, double or i32; all_gather and all_to_all also move std::byte ---
  // In place: data[n] becomes the sum over ranks.
  template <class T>
  void all_reduce(T* data, i64 n);
  // In place: data[n] becomes the maximum over ranks; NaN if any rank has NaN. Counted as all_reduce.
  template <class T>
  void all_reduce_max(T* data, i64 n);
  // recv gets the blocks of all ranks in rank order, counts[r] elements from rank r. `send` may be this
  // rank's block inside recv, but must not overlap it otherwise.
  template <class T>
  void all_gather(const T* send, T* recv, std::span<const i64> counts);
  // send has size() blocks; the block r of counts[r] elements goes to rank r, which sums them. recv has
  // counts[rank()] elements and may be this rank's block inside send.
  template <class T>
  void reduce_scatter(const T* send, T* recv, std::span<const i64> counts);
  // Blocks in rank order: send_counts[r] elements go to rank r, recv_counts[r] come from it. No overlap.
  template <class T>
  void all_to_all(const T* send, std::span<const i64> send_counts, T* recv, std::span<const i64> recv_counts);
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

  // Splits the group by color (>= 0); ranks keep their order. Collective. The new group must not outlive the
  // world it comes from. On a meta group use split_by, because it does not know the other ranks' colors.
  virtual std::unique_ptr<Group> split(int color) = 0;
  // The same if every rank knows all colors; works on every backend.
  virtual std::unique_ptr<Group> split_by(const std::function<int(int rank)>& color_of);

  // --- Counting ---
  const CommCount& counted(Collective c) const { return counts_[static_cast<int>(c)]; }
  void reset_counts() { counts_ = {}; }
  double seconds_waiting() const { return seconds_; }
  // Called after each call that communicates, with the time when it began; for profiles. Null: none.
  using OnCall = std::function<void(Collective, i64 bytes, std::chrono::steady_clock::time_point begin)>;
  void on_call(OnCall f) { on_call_ = std::move(f); }

 protected:
  Group(int rank, int size, bool meta = false) : rank_(rank), size_(size), meta_(meta) {}

  // A contiguous block of memory to or from one rank; empty blocks are not sent.
  struct Send {
    const std::byte* data;
    i64 bytes;
  };
  struct Recv {
    std::byte* data;
    i64 bytes;
  };

  // The interface of a backend; called only for groups of two or more ranks, never for meta groups. `what` is
  // for messages. Each rank sends send[r] to rank r and fills recv[r] from it; its own entry is empty. Both
  // spans have size() entries. Sizes that differ between the two sides are a BugError if the backend detects
  // it.
  virtual void do_all_to_all(Collective what, std::span<const Send> send, std::span<const Recv> recv) = 0;
  virtual void do_broadcast(void* data, i64 bytes, int root) = 0;
  virtual void do_barrier() = 0;

 private:
  class Timed;
  template <class T, class Op>
  void reduce(T* data, i64 n, Op op);
  template <class T, class Op>
  void reduce_blocks(const T* send, T* recv, std::span<const i64> counts, Op op);
  template <class T>
  void gather_blocks(const T* send, T* recv, std::span<const i64> counts);
  void agree_on_errors(const std::string& message, int code, std::exception_ptr own, bool first_only);
  void count(Collective c, i64 bytes);
  std::byte* staging(i64 bytes);

  int rank_, size_;
  bool meta_;
  std::array<CommCount, 6> counts_{};
  double seconds_ = 0;
  OnCall on_call_;
  std::unique_ptr<std::byte[]> staging_;
  i64 staging_bytes_ = 0;
  std::vector<Send> send_;  // the block tables, reused between calls
  std::vector<Recv> recv_;
};

// A group of one rank.
std::unique_ptr<Group> make_self_group();
// Rank `rank` of `size` planned ranks: counts, but moves no data; agree() returns the caller's value.
std::unique_ptr<Group> make_meta_group(int rank, int size);

// Runs `body(group)` on `size` threads, one per rank, and returns when all have ended. If ranks throw, it
// rethrows the error of the lowest rank (not the rank_failed errors that follow from it). A rank that returns
// while others wait for it in a collective is an error, not a hang. For tests.
void run_threads(int size, const std::function<void(Group&)>& body);

// The job's ranks under MPI. Initializes MPI (once, with MPI_THREAD_FUNNELED: groups belong to the main
// thread) and duplicates MPI_COMM_WORLD. Groups must end before mpi_finalize(), which main() calls last.
// mpi_abort() ends all ranks with `code` and prints nothing. Both do nothing without MPI.
std::unique_ptr<Group> make_mpi_world();
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

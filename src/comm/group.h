// Group: the ranks of one mesh axis (or of the whole job) and what they can do together.
//
// Backends: self (one rank), threads (tests: many ranks in one process), MPI, meta (a rank of a planned
// group: records, moves nothing). A collective over a group of size one is the identity and is not counted.
// Every call is collective: all ranks of the group make it, in the same order. A Group belongs to one rank
// and is used by one thread. Errors: a failed rank makes the call throw Error(rank_failed) on the others.
// A collective waits without a limit. The watchdog (launch/watchdog.h) finds ranks that are stuck or lost.
//
// Sums are made by redco, in rank order and in the element's own precision (fp32 for f32): slices are
// exchanged, added from rank 0 upwards and gathered, so every rank holds the same bits on every backend and
// placement of ranks. (Small buffers are sent whole to all and added everywhere: fewer messages, the same
// order, the same bits.) Memory: at most 16 MiB of staging a group, whatever the size of the buffers.
#pragma once

#include <array>
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

// What a group has done since the last reset, counted at the communicator. Bytes: of the tensor handed in
// (all_reduce: the buffer; all_gather: the gathered result; reduce_scatter, all_to_all: the whole input).
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

  // --- collectives; T is float, double or i32; all_gather and all_to_all also move std::byte --------------
  // In place: data[n] becomes the sum over ranks.
  template <class T>
  void all_reduce(T* data, i64 n);
  // In place: data[n] becomes the maximum over ranks; a NaN anywhere is the result. Counted as all_reduce.
  template <class T>
  void all_reduce_max(T* data, i64 n);
  // recv becomes the ranks' blocks one after the other; counts[r] elements come from rank r. `send` may be
  // the own block inside recv, but may not overlap it otherwise.
  template <class T>
  void all_gather(const T* send, T* recv, std::span<const i64> counts);
  // send: size() blocks, block r of counts[r] elements goes to rank r and is summed there; recv has
  // counts[rank()] and may be the own block inside send.
  template <class T>
  void reduce_scatter(const T* send, T* recv, std::span<const i64> counts);
  // Blocks in rank order; send_counts[r] elements go to rank r, recv_counts[r] come from it. No overlap.
  template <class T>
  void all_to_all(const T* send, std::span<const i64> send_counts, T* recv, std::span<const i64> recv_counts);
  void broadcast_bytes(void* data, i64 bytes, int root = 0);
  void barrier();

  // --- agreement: control flow, not tensors; counted as broadcast -----------------------------------------
  // Every rank gets the first rank's value. T is trivially copyable.
  template <class T>
  T agree(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    broadcast_bytes(&value, sizeof value);
    return value;
  }
  std::string agree(std::string value);
  // Whether it is so on at least one rank: the same answer on every rank.
  bool any(bool mine);
  // The texts of all ranks, in rank order, on every rank.
  std::vector<std::string> gather(const std::string& mine);
  // Runs f on the first rank only; an exception there is thrown on every rank, with the same code and
  // message.
  void on_first(const std::function<void()>& f);
  // Runs f on every rank; if any throws, all throw the lowest failing rank's error (same code, same message).
  // REQUIRES: no collective inside f: a rank that throws would leave the others in it.
  void together(const std::function<void()>& f);

  // Splits into groups by color (0 or more), ordered by rank here. Collective. The new group must not
  // outlive the world it comes from. A meta group can't know the others' colors: use
  // split_by there.
  virtual std::unique_ptr<Group> split(int color) = 0;
  // The same where each rank's color is known to all: works on every backend.
  virtual std::unique_ptr<Group> split_by(const std::function<int(int rank)>& color_of);

  // --- counting -------------------------------------------------------------------------------------------
  const CommCount& counted(Collective c) const { return counts_[static_cast<int>(c)]; }
  void reset_counts() { counts_ = {}; }
  double seconds_waiting() const { return seconds_; }

 protected:
  Group(int rank, int size, bool meta = false) : rank_(rank), size_(size), meta_(meta) {}

  // One contiguous piece of memory to or from one rank; empty ones are not sent.
  struct Send {
    const std::byte* data;
    i64 bytes;
  };
  struct Recv {
    std::byte* data;
    i64 bytes;
  };

  // What a backend provides; called for groups of two or more only, never for meta groups. `what` is for
  // messages. Each rank sends send[r] to rank r and fills recv[r] from it; the own entry is empty. Both spans
  // have size() entries. Differing sizes on the two sides are a BugError where the backend can see it.
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
  std::unique_ptr<std::byte[]> staging_;
  i64 staging_bytes_ = 0;
  std::vector<Send> send_;  // the block tables, kept between calls
  std::vector<Recv> recv_;
};

// One rank alone.
std::unique_ptr<Group> make_self_group();
// Rank `rank` of `size` planned ranks: counts, moves nothing; agree() returns the caller's value.
std::unique_ptr<Group> make_meta_group(int rank, int size);

// Runs `body(group)` on `size` threads, one a rank, and returns when all have ended; if ranks throw, rethrows
// the lowest rank's own error (not the rank_failed ones that followed from it). A rank that returns while
// others wait for it in a collective is an error too, not a hang. For tests.
void run_threads(int size, const std::function<void(Group&)>& body);

// The job's ranks under MPI: initializes MPI (once, MPI_THREAD_FUNNELED: groups belong to the main thread),
// duplicates MPI_COMM_WORLD. Groups end before mpi_finalize, which is called at the end of main; both are
// harmless without MPI. mpi_abort ends all ranks with `code`, prints nothing itself.
std::unique_ptr<Group> make_mpi_world();
void mpi_finalize();
[[noreturn]] void mpi_abort(int code);
// Whether this thread's last error from agree, on_first or together had this message: then every rank has it,
// and one of them should say so.
bool was_agreed(const std::string& message);
bool launched_under_mpi();  // mpirun, or srun with PMIx and more than one task, started this process
// Under srun without PMIx (or another MPI's mpirun) every process would be 'rank 0 of 1' and do the whole
// job. Returns what is wrong and what to do, or "" when all is well. Call it before make_mpi_world (whose
// MPI_Init may end the process there) and, if you like, after.
std::string mpi_mismatch();
// "Open MPI v4.1.4", for logs and `env`; works without initializing MPI.
std::string mpi_version();

}  // namespace redco

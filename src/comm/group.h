// Group: the ranks of one mesh axis (or of the whole job) and what they can do together.
//
// Backends: self (one rank), threads (tests: many ranks in one process), MPI, meta (a rank of a planned group:
// records, moves nothing). A collective over a group of size one is the identity and is not counted.
// Every call is collective: all ranks of the group make it, in the same order. A Group belongs to one rank and
// is used by one thread. Errors: a failed rank makes the call throw Error(rank_failed) on the others.
//
// Sums are made by redco, in rank order and in the element's own precision (fp32 for f32): slices are exchanged, added from rank 0
// upwards and gathered, so every rank holds the same bits on every backend and placement of ranks.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/types.h"

namespace redco {

enum class Collective : std::uint8_t { all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, barrier };
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

  // --- collectives; T is float, double or i32 -------------------------------------------------------------
  // In place: data[n] becomes the sum over ranks.
  template <class T>
  void all_reduce(T* data, i64 n);
  // In place: data[n] becomes the maximum over ranks.
  template <class T>
  void all_reduce_max(T* data, i64 n);
  // recv becomes the ranks' blocks one after the other; counts[r] elements come from rank r.
  template <class T>
  void all_gather(const T* send, T* recv, std::span<const i64> counts);
  // send: size() blocks, block r of counts[r] elements goes to rank r and is summed there; recv has counts[rank()].
  template <class T>
  void reduce_scatter(const T* send, T* recv, std::span<const i64> counts);
  // Blocks in rank order; send_counts[r] elements go to rank r, recv_counts[r] come from it.
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
  // Runs f on the first rank only; an exception there is thrown on every rank, with the same code and message.
  void on_first(const std::function<void()>& f);
  // Runs f on every rank; if any throws, all throw the lowest failing rank's error (same code, same message).
  void together(const std::function<void()>& f);

  // Splits into groups by color, ordered by rank here. Collective.
  virtual std::unique_ptr<Group> split(int color) = 0;

  // --- counting -------------------------------------------------------------------------------------------
  const CommCount& counted(Collective c) const { return counts_[static_cast<int>(c)]; }
  void reset_counts() { counts_ = {}; }
  double seconds_waiting() const { return seconds_; }

 protected:
  Group(int rank, int size, bool meta = false) : rank_(rank), size_(size), meta_(meta) {}

  // What a backend provides: bytes between ranks. Displacements are the running sums of the sizes.
  virtual void do_all_to_all(const void* send, std::span<const i64> send_bytes, void* recv,
                             std::span<const i64> recv_bytes) = 0;
  virtual void do_all_gather(const void* send, void* recv, std::span<const i64> bytes) = 0;
  virtual void do_broadcast(void* data, i64 bytes, int root) = 0;
  virtual void do_barrier() = 0;

 private:
  int rank_, size_;
  bool meta_;
  std::array<CommCount, 6> counts_{};
  double seconds_ = 0;
};

// One rank alone.
std::unique_ptr<Group> make_self_group();
// Rank `rank` of `size` planned ranks: counts, moves nothing; agree() returns the caller's value.
std::unique_ptr<Group> make_meta_group(int rank, int size);

// Runs `body(group)` on `size` threads, one a rank, and returns when all have ended; if ranks throw, rethrows the
// lowest rank's own error (not the rank_failed ones that followed from it). For tests.
void run_threads(int size, const std::function<void(Group&)>& body);

// The job's ranks under MPI: initializes MPI (once), duplicates MPI_COMM_WORLD. `mpi_finalize` at the end of main.
std::unique_ptr<Group> make_mpi_world();
void mpi_finalize();
[[noreturn]] void mpi_abort(int code);
bool launched_under_mpi();  // environment of mpirun, or srun with PMIx, is present

}  // namespace redco

// Blocks through several threads, in order: reading takes turns, work runs at once, writing keeps the order
// of reading. Memory is one block a thread; what is written doesn't depend on the number of threads.
#pragma once

#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/activity.h"
#include "base/types.h"

namespace redco {

// CPUs that this process may use, or OMP_NUM_THREADS where that is less; at least 1.
int text_threads();

// Calls read(block), which says false at the end; work(block, thread) with thread in [0, threads); and
// write(block), for the blocks in the order in which they were read. read and write are never run by two
// threads at once. An exception ends it: all blocks before are written, then the first one in order is
// thrown.
template <class Block, class Read, class Work, class Write>
void in_order(int threads, Read&& read, Work&& work, Write&& write) {
  constexpr u64 kNone = std::numeric_limits<u64>::max();
  struct {
    std::mutex reading, writing;
    std::condition_variable turn;
    u64 n_read = 0;       // guarded by reading
    bool at_end = false;  // guarded by reading
    u64 n_written = 0;    // this and the rest: guarded by writing
    u64 failed = kNone;   // the first block that failed
    std::exception_ptr error;
  } s;
  auto fail = [&](u64 k) {
    {
      std::lock_guard lock(s.writing);
      if (k < s.failed) {
        s.failed = k;
        s.error = std::current_exception();
      }
    }
    s.turn.notify_all();
  };
  auto run = [&](int thread) {
    Block block{};
    for (;;) {
      u64 k = kNone;
      try {
        {
          std::lock_guard lock(s.reading);
          if (s.at_end) return;
          k = s.n_read;
          s.at_end = true;  // unless read() says otherwise, and doesn't throw
          if (!read(block)) return;
          s.at_end = false;
          ++s.n_read;
        }
        work(block, thread);
        activity::tick();
        {
          std::unique_lock lock(s.writing);
          s.turn.wait(lock, [&] { return s.n_written == k || s.failed < k; });
          if (s.failed < k) return;
          write(block);
          ++s.n_written;
        }
        s.turn.notify_all();
      } catch (...) {
        fail(k);
        return;
      }
    }
  };
  std::vector<std::thread> helpers;
  for (int t = 1; t < threads; ++t) {
    try {
      helpers.emplace_back(run, t);
    } catch (const std::system_error&) {
      break;  // no more threads to be had: those there are do the work
    }
  }
  run(0);
  for (std::thread& t : helpers) t.join();
  if (s.error) std::rethrow_exception(s.error);
}

}  // namespace redco

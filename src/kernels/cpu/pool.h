// Loops over the OpenMP pool. The split of the work depends only on shapes; the thread that runs a piece
// never changes the result. After each piece the thread of the rank polls (base/background.h), so kernels
// loop with these functions alone. Long pieces poll themselves, too.
#pragma once

#include <omp.h>

#include <algorithm>

#include "base/background.h"
#include "base/types.h"
#include "kernels/cpu/shares.h"

namespace redco::kernels {

constexpr i64 kBlock = 16384;  // elements in one piece of an elementwise loop
// Less work than this (in element visits) runs on the calling thread: a parallel region costs about 5 us.
constexpr i64 kSerial = 2 * kBlock;

inline int workers(i64 n, i64 work) {
  if (n < 2 || work < kSerial || omp_in_parallel()) return 1;
  return static_cast<int>(std::min<i64>(n, omp_get_max_threads()));
}

// The same on the calling thread. Short work does not poll.
template <class F>
void for_each_here(i64 n, i64 work, const F& f) {
  const bool polls = work >= kSerial;
  for (i64 i = 0; i < n; ++i) {
    f(i);
    if (polls) background::poll();
  }
}

// Calls f(i) for i in [0, n); `work` is the total cost in element visits. f must not throw.
template <class F>
void for_each(i64 n, i64 work, const F& f) {
  const int t = workers(n, work);
  if (t <= 1) return for_each_here(n, work, f);
#pragma omp parallel for num_threads(t) schedule(static)
  for (i64 i = 0; i < n; ++i) {
    f(i);
    background::poll();
  }
}

// How many of n pieces run at the same time, at most.
inline i64 rooms_for(i64 n) { return std::clamp<i64>(n, 1, omp_get_max_threads()); }

// The same for pieces of different cost, or if other processes use the cores, and for pieces that need
// memory: f(i, room); pieces that run at the same time get different rooms of [0, rooms), rooms >= 1.
template <class F>
void for_each_in_rooms(i64 rooms, i64 n, i64 work, const F& f) {
  const int t = static_cast<int>(std::min<i64>(rooms, workers(n, work)));
  if (t <= 1) return for_each_here(n, work, [&](i64 i) { f(i, 0); });
  Shares shares(n, t);
#pragma omp parallel num_threads(t)
  {
    const int thread = omp_get_thread_num();
    shares.take(thread, [&](i64 i) {
      f(i, thread);
      background::poll();
    });
  }
}

// The same without rooms.
template <class F>
void for_each_dynamic(i64 n, i64 work, const F& f) {
  for_each_in_rooms(rooms_for(n), n, work, [&](i64 i, i64) { f(i); });
}

// Calls f(begin, end) over [0, n) in pieces of kBlock elements.
template <class F>
void for_blocks(i64 n, const F& f) {
  for_each(ceil_div(n, kBlock), n, [&](i64 i) { f(i * kBlock, std::min(n, (i + 1) * kBlock)); });
}

// Calls f(begin, end) over R rows of C elements, in groups of about kBlock elements.
template <class F>
void for_rows(i64 R, i64 C, const F& f) {
  const i64 group = std::max<i64>(1, kBlock / std::max<i64>(1, C) / 2);
  for_each(ceil_div(R, group), R * std::max<i64>(1, C),
           [&](i64 i) { f(i * group, std::min(R, (i + 1) * group)); });
}

}  // namespace redco::kernels

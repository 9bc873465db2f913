// Loops over the threads of a rank's kernels, for code outside of the kernels: sums and copies of messages,
// reads of files. The kernels set the loop; without it, and inside of a parallel loop of the kernels, the
// calling thread does all.
#pragma once

#include "base/types.h"

namespace redco::parallel {

// Calls body(of, i) for i in [0, n), on any threads. It does not poll (base/background.h).
using Body = void (*)(const void* of, i64 i);
using Loop = void (*)(i64 n, const void* of, Body body);

namespace detail {
inline constinit thread_local Loop loop = nullptr;
inline constinit thread_local int threads = 1;
}  // namespace detail

// For the calling thread: a loop over this many threads; null: none.
inline void set(Loop loop, int threads) noexcept {
  detail::loop = loop;
  detail::threads = loop ? threads : 1;
}
inline int threads() noexcept { return detail::threads; }

// Calls f(i) for i in [0, n): long pieces, each worth a thread. f must not throw.
template <class F>
void for_each(i64 n, const F& f) {
  if (!detail::loop || n < 2) {
    for (i64 i = 0; i < n; ++i) f(i);
    return;
  }
  detail::loop(n, &f, [](const void* of, i64 i) { (*static_cast<const F*>(of))(i); });
}

// Calls f(begin, end) over [0, n) items of `size` bytes: in blocks that are worth a thread, or once. f must
// not throw.
template <class F>
void for_blocks(i64 n, i64 size, const F& f) {
  constexpr i64 kBlockBytes = i64{128} << 10;
  const i64 block = kBlockBytes / size;
  if (!detail::loop || n < 4 * block) return f(i64{0}, n);
  const auto run = [&](i64 i) { f(i * block, i * block + block < n ? i * block + block : n); };
  detail::loop(ceil_div(n, block), &run,
               [](const void* of, i64 i) { (*static_cast<const decltype(run)*>(of))(i); });
}

}  // namespace redco::parallel

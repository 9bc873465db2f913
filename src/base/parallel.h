// Loops over the threads of a rank's kernels, for code below the kernels: sums and copies of messages. The
// kernels set the loop; without it, and inside of a parallel loop of the kernels, the calling thread does
// all.
#pragma once

#include "base/types.h"

namespace redco::parallel {

// Calls body(of, i) for i in [0, n), on any threads. It does not poll (base/background.h).
using Body = void (*)(const void* of, i64 i);
using Loop = void (*)(i64 n, const void* of, Body body);

namespace detail {
inline constinit thread_local Loop loop = nullptr;
}

// For the calling thread; null: none.
inline void set(Loop loop) noexcept { detail::loop = loop; }

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

#include "plan/cache_distances.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace redco {

namespace {

// The kernel's view of one cache: of an AMD CPU, sysconf() tells the sum of its last caches.
i64 last_cache_bytes() {
  i64 most = 0;
  for (int i = 0;; ++i) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", i);
    i64 kib = 0;
    if (!(std::ifstream(folder + "size") >> kib)) break;  // "32768K"
    most = std::max(most, kib << 10);
  }
  if (most > 0) return most;
  for (const int name : {_SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL4_CACHE_SIZE})
    most = std::max<i64>(most, sysconf(name));
  return most;
}

}  // namespace

Distances distances_for(i64 most_bytes, int ranks) {
  const i64 cache = std::max<i64>(last_cache_bytes(), i64{8} << 20);
  Distances d;
  d.middle = 0.5 * static_cast<double>(cache) / ranks;
  d.farthest = 9 * d.middle;
  if (most_bytes > 0) d.farthest = std::min(d.farthest, static_cast<double>(most_bytes));
  d.far = std::min(3.5 * d.middle, d.farthest / 2);
  d.middle = std::min(d.middle, d.far / 2);
  d.near = std::min(d.near, d.middle / 2);
  return d;
}

}  // namespace redco

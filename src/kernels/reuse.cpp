#include "kernels/reuse.h"

#include <algorithm>
#include <iterator>

#include "kernels/native.h"

namespace redco::kernels {

i64 bytes_touched(const View& v) {
  if (!v.present) return 0;
  if (v.strides.empty()) return v.bytes();
  Shape distinct = v.shape;
  for (std::size_t d = 0; d < distinct.size(); ++d)
    if (v.strides[d] == 0) distinct[d] = std::min<i64>(distinct[d], 1);
  return bytes_of(v.dtype, stored_numel(v.dtype, distinct));
}

SmallVector<ReuseDistance::Part, 4> ReuseDistance::touched(const View& v) {
  SmallVector<Part, 4> parts;
  const i64 bytes = bytes_touched(v);
  if (bytes <= 0) return parts;
  const u64 begin = reinterpret_cast<u64>(Native::address(v.data)), end = begin + static_cast<u64>(bytes);
  // Cuts the segments at both ends.
  for (const u64 cut : {begin, end}) {
    auto it = segments_.upper_bound(cut);
    if (it == segments_.begin()) continue;
    --it;
    if (it->first == cut || it->second.end <= cut) continue;
    const Segment rest = it->second;
    it->second.end = cut;
    segments_.emplace(cut, rest);
  }
  u64 known = 0;
  auto it = segments_.lower_bound(begin);
  for (; it != segments_.end() && it->first < end; it = segments_.erase(it)) {
    const u64 n = it->second.end - it->first;
    known += n;
    parts.push_back({static_cast<double>(n), clock_ - it->second.at});
  }
  const u64 unknown = end - begin - known;
  if (unknown > 0) parts.push_back({static_cast<double>(unknown), kNever});
  clock_ += static_cast<double>(bytes);
  segments_.emplace_hint(it, begin, Segment{end, clock_});
  return parts;
}

}  // namespace redco::kernels

// Reuse distance: how many bytes have been touched since the memory of an operand was touched last. It tells
// which level of the caches the operand comes from (Mattson et al. 1970), without running anything.
#pragma once

#include <map>

#include "kernels/view.h"

namespace redco::kernels {

class ReuseDistance {
 public:
  // Touches the bytes of a view. Calls f(bytes, distance) for each part of it with one distance, in bytes;
  // parts that were never touched have kNever. Elements of a repeated dim count once, and a view with gaps
  // counts as `bytes` at its place.
  static constexpr double kNever = 1e18;
  template <class F>
  void touch(const View& v, const F& f) {
    for (const Part& p : touched(v)) f(p.bytes, p.distance);
  }

 private:
  struct Part {
    double bytes, distance;
  };
  struct Segment {
    u64 end;
    double at;  // the clock when it was touched last
  };
  SmallVector<Part, 4> touched(const View& v);
  std::map<u64, Segment> segments_;  // by their first address; they do not overlap
  double clock_ = 0;                 // bytes touched so far
};

// The bytes that a kernel reads or writes of a view: elements of a repeated dim count once.
i64 bytes_touched(const View& v);

}  // namespace redco::kernels

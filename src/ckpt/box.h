// Boxes of tensors, and the walk over the bytes one covers in a file.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/types.h"

namespace redco::ckpt {

// Elements [begin, end) of one dim. A box has one Range per dim; an empty Range makes it empty.
struct Range {
  i64 begin, end;
  i64 size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};
using Box = std::vector<Range>;

Box whole(const Shape& shape);
i64 numel(const Box& box);

// How the elements of a box lie in memory: one stride per dim, in elements. Memory of element (i0, i1, ...)
// of the tensor is at sum((i_d - begin_d) * stride_d).
using Strides = std::vector<i64>;
Strides contiguous(const Box& box);  // row-major, nothing between
Strides transposed(const Box& box);  // 2-D: memory is (columns, rows). REQUIRES: box.size() == 2

// A run of elements that lie one after the other in the file.
struct Segment {
  i64 file;    // its first element's index in the tensor
  i64 memory;  // its first element's index in memory
  i64 count;
};

// The segments of a box in file order (as far as overlapping strides allow). Dims that are contiguous in both
// are merged first, so that segments are as long as they can be and at most max_count long. All segments have
// the same memory stride between elements: `stride`.
class SegmentWalk {
 public:
  // file: how the tensor's elements lie in the file; empty is row-major. REQUIRES: box inside shape,
  // strides.size() == shape.size().
  SegmentWalk(const Shape& shape, const Box& box, const Strides& strides, i64 max_count,
              const Strides& file = {});
  i64 stride() const { return stride_; }
  bool next(Segment* s);  // false: no more

 private:
  struct Dim {
    i64 extent, file, memory;  // steps in elements
  };
  std::vector<Dim> outer_;
  std::vector<i64> at_;
  i64 stride_ = 1, extent_ = 0, max_count_;
  i64 file_ = 0, memory_ = 0, done_ = 0;
  bool more_ = false;
};

}  // namespace redco::ckpt

// Boxes of tensors, and iteration over a box's bytes in a file.
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

// Memory layout of a box: one stride per dim. Element (i0, i1, ...) of the tensor is at sum((i_d - begin_d) *
// stride_d).
Strides contiguous(const Box& box);  // row-major, without gaps
Strides transposed(const Box& box);  // 2-D: memory is (columns, rows). REQUIRES: box.size() == 2

// A run of elements that are contiguous in the file.
struct Segment {
  i64 file;    // index of its first element in the tensor
  i64 memory;  // index of its first element in memory
  i64 count;
};

// The segments of a box in file order (as far as overlapping strides allow). Dims that are contiguous in file
// and memory are merged first, so segments are as long as possible, up to max_count. All segments have the
// same memory stride between elements: `stride`.
class SegmentWalk {
 public:
  // file: strides of the tensor's elements in the file; empty: row-major. REQUIRES: box inside shape,
  // strides.size() == shape.size().
  SegmentWalk(const Shape& shape, const Box& box, const Strides& strides, i64 max_count,
              const Strides& file = {});
  i64 stride() const { return stride_; }
  bool next(Segment* s);  // false: at the end

 private:
  struct Dim {
    i64 extent, file, memory;  // strides in elements
  };
  std::vector<Dim> outer_;
  std::vector<i64> at_;
  i64 stride_ = 1, extent_ = 0, max_count_;
  i64 file_ = 0, memory_ = 0, done_ = 0;
  bool more_ = false;
};

}  // namespace redco::ckpt

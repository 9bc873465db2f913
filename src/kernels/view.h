// View: an operand of a kernel: where its elements are, their type, shape and strides. A view does not own
// the memory; work that is submitted to a queue finds it there because memory is reused in the queue's order.
#pragma once

#include <vector>

#include "base/types.h"
#include "kernels/device_ptr.h"

namespace redco {

struct View {
  DevicePtr data;
  DType dtype = DType::f32;
  bool present = false;  // false: an optional operand that is absent
  Shape shape;           // local sizes
  Strides strides;       // in elements, one per dim, 0 where a dim is repeated; empty: row-major

  i64 numel() const { return redco::numel(shape); }
  i64 bytes() const { return bytes_of(dtype, stored_numel(dtype, shape)); }
  int rank() const { return static_cast<int>(shape.size()); }
  i64 last() const { return shape.back(); }
  // The product of all dims but the last `trailing` ones; also correct if those are empty.
  i64 leading(int trailing = 1) const {
    i64 n = 1;
    for (int d = 0; d + trailing < rank(); ++d) n *= shape[d];
    return n;
  }
  Strides steps() const;  // the strides, also of a row-major view
  // The same elements from index `start` of dim d on, `size` of them. Groups are not cut.
  View narrowed(int d, i64 start, i64 size) const;
  // Elements [first, first + n) of a row-major view in the order of memory, in one dim.
  View flat(i64 first, i64 n) const {
    View v = *this;
    v.data = data.plus(bytes_of(dtype, first));
    v.shape = {n};
    v.strides.clear();
    return v;
  }
  // The same bytes, row-major in another shape. REQUIRES: this is row-major.
  View reshaped(Shape other) const {
    View v = *this;
    v.shape = std::move(other);
    return v;
  }
};

using Views = SmallVector<View, 3>;

// The strides of a row-major tensor; rows of the last dim are multiples of `group` elements.
Strides row_major(const Shape& s, i64 group = 1);

inline Strides View::steps() const { return strides.empty() ? row_major(shape, group_of(dtype)) : strides; }

}  // namespace redco

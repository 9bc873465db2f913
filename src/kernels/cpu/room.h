// Workspaces in parts with types.
#pragma once

#include "base/types.h"

namespace redco::kernels {

// Hands out the parts of a workspace of T, one after the other. Without memory it only counts. So one
// function lays out the parts, and also tells how large the workspace must be.
template <class T>
class Room {
 public:
  explicit Room(T* data = nullptr) : data_(data) {}
  // The next n elements; null without memory.
  template <class E = T>
  E* take(i64 n) {
    static_assert(alignof(E) <= alignof(T));
    const i64 at = used_;
    used_ += ceil_div(n * static_cast<i64>(sizeof(E)), static_cast<i64>(sizeof(T)));
    return data_ ? reinterpret_cast<E*>(data_ + at) : nullptr;
  }
  // Elements of T so far.
  i64 used() const { return used_; }

 private:
  T* data_;
  i64 used_ = 0;
};

}  // namespace redco::kernels

// Scratch: memory that a loop keeps from pass to pass. It is not initialized: fresh pages cost more than the
// copies into them.
#pragma once

#include <cstddef>
#include <memory>

#include "base/types.h"

namespace redco {

template <class T>
class Scratch {
 public:
  // Memory of n elements, whose values are undefined. Valid until the next call.
  T* of(i64 n) {
    if (n > size_) {
      data_.reset();
      data_.reset(new T[static_cast<std::size_t>(n)]);
      size_ = n;
    }
    return data_.get();
  }

 private:
  std::unique_ptr<T[]> data_;
  i64 size_ = 0;
};

}  // namespace redco

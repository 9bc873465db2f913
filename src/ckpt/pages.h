// Pages: memory of the host for saves, in huge pages if the system has them.
#pragma once

#include <cstddef>
#include <memory>

#include "base/types.h"

namespace redco::ckpt {

// Not initialized by the caller: pages become resident, as zeros, when they are first used or by populate().
class Pages {
 public:
  explicit Pages(i64 bytes);  // std::bad_alloc
  std::byte* data() const { return memory_.get(); }
  i64 bytes() const { return bytes_; }
  // Makes [begin, end) resident. Older kernels (before Linux 5.14) do it at the first use only. Any thread.
  void populate(i64 begin, i64 end) const;

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(std::byte* p) const;
  };
  i64 bytes_;
  std::unique_ptr<std::byte, Unmap> memory_;
};

}  // namespace redco::ckpt

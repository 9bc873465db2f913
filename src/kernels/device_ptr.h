// DevicePtr: an address in the memory of a device. Only the kernels of the device can read what is there. All
// other code passes it on, or copies between it and the host's memory with Queue::read and Queue::write.
#pragma once

#include <cstddef>

#include "base/types.h"

namespace redco {

namespace kernels {
class Native;
}

class DevicePtr {
 public:
  DevicePtr() = default;
  explicit operator bool() const { return address_ != nullptr; }
  // The place of an offset in the memory of a planned rank: an address that nothing can read.
  static DevicePtr planned(i64 offset) {
    return DevicePtr(reinterpret_cast<std::byte*>((u64{1} << 62) + static_cast<u64>(offset)));
  }
  // The address `bytes` further on; null stays null.
  DevicePtr plus(i64 bytes) const { return DevicePtr(address_ ? address_ + bytes : nullptr); }
  friend bool operator==(const DevicePtr&, const DevicePtr&) = default;

 private:
  friend class kernels::Native;
  explicit DevicePtr(std::byte* address) : address_(address) {}
  std::byte* address_ = nullptr;
};

}  // namespace redco

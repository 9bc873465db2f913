// The addresses behind DevicePtrs. Only for src/kernels (scripts/check-layers).
#pragma once

#include "kernels/device_ptr.h"

namespace redco::kernels {

class Native {
 public:
  static DevicePtr pointer(void* address) { return DevicePtr(static_cast<std::byte*>(address)); }
  static std::byte* address(const DevicePtr& p) { return p.address_; }
};

}  // namespace redco::kernels

// The queue that tests of tensors, ops and models compute with. ctest runs some programs several times:
// with REDCO_TEST_QUEUE=delayed, work runs late on another thread, in memory that is overwritten when it is
// freed; with REDCO_TEST_DEVICE=minimal, the device has no fused kernels, so ops are composed; with
// REDCO_TEST_DEVICE=plain, it is another device, with the required kernels only (plain_device.h).
#pragma once

#include <cstdlib>
#include <memory>
#include <string_view>

#include "kernels/queue.h"
#include "kernels/threads.h"
#include "support/plain_device.h"

namespace redco::testing {

inline bool is_set(const char* variable, std::string_view value) {
  const char* const is = std::getenv(variable);
  return is && is == value;
}

// The CPU with only those kernels that a device must have, and those for some models.
inline const Device& minimal_device() {
  static const Device device = [] {
    Device d = cpu_device();
    d.name = "the minimal device";
    Kernels& k = d.kernels;
    const auto remove = [](auto&... kernels) { ((kernels.run = nullptr), ...); };
    remove(k.linear, k.linear_input_gradient, k.linear_weight_gradients, k.unary_backward, k.gated,
           k.gated_backward, k.softmax, k.log_softmax, k.log_softmax_backward, k.layer_norm,
           k.layer_norm_backward, k.rms_norm, k.rms_norm_backward, k.attention, k.attention_backward, k.rope,
           k.sum_exp_and_target, k.cross_entropy, k.cross_entropy_backward, k.experts, k.experts_backward);
    return d;
  }();
  return device;
}

// The delayed queue's worker has the threads of this one, for which workspaces are sized.
inline std::shared_ptr<Queue> test_queue() {
  const Device& device = is_set("REDCO_TEST_DEVICE", "minimal") ? minimal_device()
                         : is_set("REDCO_TEST_DEVICE", "plain") ? plain_device()
                                                                : cpu_device();
  return is_set("REDCO_TEST_QUEUE", "delayed") ? Queue::delayed(device, kernels::threads())
                                               : Queue::immediate(device);
}

}  // namespace redco::testing

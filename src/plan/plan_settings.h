// The `plan:` section: the machines to plan for.
#pragma once

#include <optional>
#include <string>

#include "base/settings.h"

namespace redco {

struct PlanSettings {
  std::optional<std::string> devices;
  std::optional<double> flops_per_s, bf16_flops_per_s, memory_bytes_per_s;
  double host_latency_s = 5e-6, host_bytes_per_s = 5e9;
  double network_latency_s = 2e-5, network_bytes_per_s = 1.25e9;

  void visit(SettingsVisitor& v) {
    v.field("devices", devices, "machines to plan for, e.g. 2 x 4 x 32GiB; ~: this machine")
        .looks_like("HOSTS x DEVICES x MEMORY");
    v.field(
         "flops_per_s", flops_per_s,
         "speed of matrix products that a device reaches in fp32, FLOP/s; with memory_bytes_per_s, plan predicts "
         "times from these numbers; ~: from the measurement of this machine (redco env --measure)")
        .above(0);
    v.field("bf16_flops_per_s", bf16_flops_per_s, "the same for products in bf16; ~: flops_per_s").above(0);
    v.field("memory_bytes_per_s", memory_bytes_per_s, "speed of a device's memory, bytes/s; with flops_per_s")
        .above(0);
    v.field("host_latency_s", host_latency_s,
            "latency of a message between the devices of a host, s; used with flops_per_s")
        .at_least(0);
    v.field("host_bytes_per_s", host_bytes_per_s,
            "speed of a device's link to the others of its host, bytes/s; used with flops_per_s")
        .above(0);
    v.field("network_latency_s", network_latency_s,
            "latency of a message between hosts, s; used with flops_per_s, or if it was not measured")
        .at_least(0);
    v.field("network_bytes_per_s", network_bytes_per_s,
            "speed of the link of a host, bytes/s; used with flops_per_s, or if it was not measured")
        .above(0);
  }
};

}  // namespace redco

// CallWork: how much work a submitted kernel is, and which measured speed applies to it. `redco env
// --measure` and the plan both derive it from the call, so a speed is always used for what it was measured
// with.
#pragma once

#include <string>
#include <vector>

#include "kernels/call.h"

namespace redco {

// What a kernel does, for tables that people read.
enum class WorkClass : std::uint8_t { products, attention, optimizer, other };
const char* name_of(WorkClass c);

struct CallWork {
  // The name of the speed: the kernel, then what its speed depends on besides sizes, the most important
  // first: "linear bf16", "unary gelu_tanh f32". If a machine has no speed with this name, the last word is
  // dropped.
  std::string kind;
  std::vector<double> at;  // the sizes that the speed depends on
  double units = 0;        // FLOPs or bytes
  WorkClass type = WorkClass::other;
  // The operands whose memory is read or written, without workspaces.
  SmallVector<View, 12> operands;
};

CallWork work_of(const KernelCall& call);

}  // namespace redco

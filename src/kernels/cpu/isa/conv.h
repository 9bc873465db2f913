// Range kernels of convolutions, declared once per instruction set. They run on the calling thread.
#pragma once

#include "base/types.h"

namespace redco::kernels {

// Number of elements that may be read after the last pixel: one vector.
constexpr i64 kConvSlack = 16;

namespace baseline {
#include "kernels/cpu/isa/conv.inc"
}
namespace avx2 {
#include "kernels/cpu/isa/conv.inc"
}
namespace avx512 {
#include "kernels/cpu/isa/conv.inc"
}

}  // namespace redco::kernels

// The range kernels of convolutions, declared once per instruction set. They run on the calling thread.
#pragma once

#include "base/types.h"

namespace redco::kernels {

// Elements that may be read behind the last pixel: a vector's.
constexpr i64 kConvSlack = 16;

namespace baseline {
#include "kernels/isa/conv.inc"
}
namespace avx2 {
#include "kernels/isa/conv.inc"
}
namespace avx512 {
#include "kernels/isa/conv.inc"
}

}  // namespace redco::kernels

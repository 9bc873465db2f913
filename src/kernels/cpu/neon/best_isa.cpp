#include "kernels/cpu/best_isa.h"

namespace redco::kernels {

Isa widest_isa() { return Isa::baseline; }
Isa fastest_isa(Isa best) { return best; }

}  // namespace redco::kernels

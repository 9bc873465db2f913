#include "kernels/cpu/groups.h"

#include "kernels/cpu/isa/ranges.h"
#include "kernels/cpu/pool.h"
#include "kernels/isa.h"

namespace redco::kernels {

template <class G>
void to_groups(const float* x, G* y, i64 rows, i64 n) {
  for_rows(rows, n, [&](i64 r, i64 end) {
    for (; r < end; ++r) REDCO_ISA_CALL(to_groups(x + r * n, y + r * groups_in(n), n));
  });
}

template <class G>
void from_groups(const G* x, float* y, i64 rows, i64 n) {
  for_rows(rows, n, [&](i64 r, i64 end) {
    for (; r < end; ++r) REDCO_ISA_CALL(from_groups(x + r * blocks_in<G>(n), 0, y + r * n, n));
  });
}

template void to_groups(const float*, Group8*, i64, i64);
template void to_groups(const float*, Group4*, i64, i64);
#define INSTANTIATE(G) template void from_groups(const G*, float*, i64, i64);
INSTANTIATE(Group8)
INSTANTIATE(Group4)
REDCO_EACH_READ_GROUP(INSTANTIATE)
#undef INSTANTIATE

}  // namespace redco::kernels

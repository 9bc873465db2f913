#include "models/positions.h"

#include <algorithm>

#include "base/error.h"
#include "tensor/transfer.h"

namespace redco {

Tensor row_positions(const Tensor& ids, i64 first, std::optional<i32> padding) {
  REDCO_CHECK(ids.rank() == 2 && ids.dtype() == DType::i32 && ids.local()[1] == ids.shape()[1],
              "positions of {}: rows must not be sharded along their tokens", describe(ids));
  const Tensor out(ids.shape(), DType::i32, ids.layout(), ids.hidden());
  if (out.is_meta()) return out;
  const i64 S = ids.local()[1];
  std::vector<i32> ids_or_positions = host_copy<i32>(ids);
  auto at = ids_or_positions.begin();
  for (i64 row = 0; row < ids.local()[0]; ++row) {
    i64 next = first;
    for (i64 s = 0; s < S; ++s, ++at) *at = static_cast<i32>(padding && *at == *padding ? first - 1 : next++);
  }
  copy_from_host<i32>(ids_or_positions, out);
  return out;
}

Tensor full_ids_like(const Tensor& ids, i32 value) {
  Tensor out(ids.shape(), DType::i32, ids.layout(), ids.hidden());
  Context::current().run(&Kernels::fill, out, value);
  return out;
}

}  // namespace redco

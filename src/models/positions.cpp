#include "models/positions.h"

#include <algorithm>

#include "base/error.h"

namespace redco {

Tensor row_positions(const Tensor& ids, i64 first, std::optional<i32> padding) {
  REDCO_CHECK(ids.rank() == 2 && ids.dtype() == DType::i32 && ids.local()[1] == ids.shape()[1],
              "positions of {}: rows must not be sharded along their tokens", describe(ids));
  Tensor out(ids.shape(), DType::i32, ids.layout(), ids.hidden());
  if (out.is_meta()) return out;
  const i64 S = ids.local()[1];
  const i32* id = ids.data<i32>();
  i32* position = out.mutable_data<i32>();
  for (i64 row = 0; row < ids.local()[0]; ++row) {
    i64 next = first;
    for (i64 s = 0; s < S; ++s, ++id)
      *position++ = static_cast<i32>(padding && *id == *padding ? first - 1 : next++);
  }
  return out;
}

Tensor full_ids_like(const Tensor& ids, i32 value) {
  Tensor out(ids.shape(), DType::i32, ids.layout(), ids.hidden());
  if (!out.is_meta()) std::fill_n(out.mutable_data<i32>(), out.local_numel(), value);
  return out;
}

}  // namespace redco

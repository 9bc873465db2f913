// Rows and entries by id. Ids are i32 tensors.
#pragma once

#include "tensor/tensor.h"

namespace redco {

// out[..., C] = table[ids[...], :]. A table cut along rows gives a Partial (rows not mine are 0). Ids outside
// the table are errors of the caller (data checks them against the vocabulary); they give zeros here.
// The row `frozen` (none if negative) is read like any other but gets no gradient: torch's padding_idx.
Tensor embedding(const Tensor& table, const Tensor& ids, i64 frozen = -1);
// Sum of g[..., C] into rows by id; the result is cut like `like` where that is free.
Tensor scatter_rows(const Tensor& g, const Tensor& ids, i64 rows, const Layout& like);
// out[...] = x[..., ids[...]]: the labels' entries; ids < 0 give 0.
Tensor pick(const Tensor& x, const Tensor& ids);
// The vjp of pick: zeros but for g at ids.
Tensor unpick(const Tensor& g, const Tensor& ids, i64 width, const Layout& like);

}  // namespace redco

// Selects rows and elements by id. Ids are i32 tensors.
#pragma once

#include "tensor/node.h"

namespace redco {

// out[..., C] = table[ids[...], :]. A table cut along rows gives a Partial (rows of other ranks count as 0).
// Ids must be in [0, rows): another one gives zeros, and an error when the step ends (pipeline/bad_ids.h).
// Row `frozen` (negative: none) gets no gradient, like PyTorch's padding_idx.
Tensor embedding(const Tensor& table, const Tensor& ids, i64 frozen = -1);
// Adds each g[..., C] to the row of its id; the result is cut like `like` if that is free.
Tensor scatter_rows(const Tensor& g, const Tensor& ids, i64 rows, const Layout& like,
                    const GradientRoom& room = {});
// out[...] = x[..., ids[...]], e.g. the logits of the labels; 0 where ids < 0. Ids beyond the last element
// are an error when the step ends.
Tensor pick(const Tensor& x, const Tensor& ids);
// The vjp of pick: g at ids, zeros elsewhere.
Tensor unpick(const Tensor& g, const Tensor& ids, i64 width, const Layout& like);

}  // namespace redco

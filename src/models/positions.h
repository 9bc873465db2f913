// Position ids that a model derives from its input.
#pragma once

#include <optional>

#include "tensor/tensor.h"

namespace redco {

// [B, S] i32 like `ids`: first, first + 1, ... in every row. With a padding id (RoBERTa) only other ids are
// counted, and padding gets first - 1.
Tensor row_positions(const Tensor& ids, i64 first, std::optional<i32> padding = {});

Tensor full_ids_like(const Tensor& ids, i32 value);

}  // namespace redco

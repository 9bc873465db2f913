// Position ids that a model derives from its input.
#pragma once

#include <optional>
#include <vector>

#include "tensor/tensor.h"

namespace redco {

// [B, S] i32 like `ids`: first, first + 1, ... in every row. With a padding id (RoBERTa) only other ids are
// counted, and padding gets first - 1.
Tensor row_positions(const Tensor& ids, i64 first, std::optional<i32> padding = {});

// For attention in chunks of this many positions: [B, keys] i32, which is equal for two keys that a query may
// see together, and 0 for a masked key. positions [B, T]; key_mask [B, keys] or undefined: 0 for padding, or
// sample numbers in rows with several samples. keys > T: those of a cache too, whose padding is on the left.
Tensor chunk_numbers(const Tensor& positions, const Tensor& key_mask, i64 chunk, i64 keys);

// Rows [rows, width] of sines of each position in the first half of the dims, and cosines in the second:
// frequencies 10000^(-2k / width) (Vaswani et al. 2017).
std::vector<float> sinusoid_rows(i64 rows, i64 width);
// The same with frequencies from 1 to 1 / 10000 (tensor2tensor), in fp32 as transformers computes them. Row
// zero_row is zero. width: even, at least 4.
std::vector<float> counted_sinusoid_rows(i64 rows, i64 width, i64 zero_row);
// [B, S, width]: the rows `ids` [B, S] of a constant table, in fp32, or fp64 if `type` is it; zeros for a row
// beyond its end (of a finished row of a generation).
Tensor table_rows(const Tensor& ids, const std::vector<float>& table, i64 width, DType type);

// Each row begins with `first`, and ends before its last id.
Tensor shifted_ids(const Tensor& ids, i32 first);
Tensor full_ids_like(const Tensor& ids, i32 value);

}  // namespace redco

// Passes of a decoder over new tokens, with a cache.
//
// Shapes: rows R, new tokens n, cached columns T, memory length S, vocabulary V.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "models/model.h"

namespace redco {

// The most tokens of one pass: longer prompts go through the model in pieces.
constexpr i64 kTokensOfPass = 8192;

// Prompts padded on the left to the longest one.
struct Padded {
  i64 length = 0;
  std::vector<i32> ids;    // [R, length]
  std::vector<i64> begin;  // [R] the column of each row's first token
};
Padded pad_left(const std::vector<std::span<const i32>>& rows, i32 pad);

// The encoder's output, for a pass of an encoder-decoder model.
struct PassMemory {
  Tensor states;              // [R, S, C], only in the first pass of a cache
  std::span<const i32> mask;  // [R, S]; empty: no padding
  i64 length = 0;             // S
};

// Computes `length` new tokens of each row, ids [R, length]. begin[r]: the column of row r's first
// token, counted over all columns that the cache will hold. -> logits of the last position, [R, 1, V].
Tensor forward(const Model& model, const ParamTree& params, ModelCache& cache, i64 rows, i64 length,
               std::span<const i32> ids, std::span<const i64> begin, const PassMemory& memory);

// Logits of each row's last position, [R, V] on every rank of the mp group; rows are padded on the left.
std::vector<float> next_token_logits(const Model& model, const ParamTree& params,
                                     const std::vector<std::vector<i32>>& prompts);

// The passes of a batch without choosing tokens, for plans on a meta context: the encoder over `encoded`
// tokens per row (0: no such encoder) or over images, a prefill of `prompt` tokens, and one step after which
// the cache holds `length` columns. Calls between() after the prefill. -> bytes of the cache on this rank.
i64 trace_generation(const Model& model, const ParamTree& params, i64 rows, i64 encoded, i64 prompt,
                     i64 length, CacheDType dtype, const std::function<void()>& between);

}  // namespace redco

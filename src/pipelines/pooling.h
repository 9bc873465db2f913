// Pooling: the embedding of a text from the hidden states of its tokens, equal to sentence-transformers'.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "pipeline/pipeline.h"

namespace redco {

// Fields of a batch that pool() reads, PREFIX + "pool.MODE" [rows, length] i32: the weight of each token in
// the modes; 0 for padding and for the first skip[r] tokens. tokens: the number of tokens of each row.
void add_pooling_weights(Batch& batch, const std::string& prefix, std::span<const std::string> modes,
                         std::span<const i64> tokens, std::span<const i64> skip);

// hidden [B, S, C] -> [B, modes x C].
Tensor pool(const Tensor& hidden, const Batch& batch, const std::string& prefix,
            std::span<const std::string> modes);

// Rows scaled to length 1; a row of zeros stays.
Tensor unit_rows(const Tensor& x);

}  // namespace redco

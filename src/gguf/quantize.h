// Numbers to the element types of GGUF files: the inverse of dequantize().
#pragma once

#include "gguf/block_types.h"
#include "gguf/error_feedback.h"

namespace redco::gguf {

// Types that quantize() writes: F32, F16, BF16, Q4_0, Q4_1, Q8_0, Q4_K, Q6_K.
bool is_written(BlockType t);

// Quantizes n blocks of size_of(t).elements numbers. Scales and minima of 4 bits are those with the least sum
// of squared errors among the candidates that ggml tries. REQUIRES: is_written(t), finite numbers.
void quantize(BlockType t, const float* x, i64 n, unsigned char* blocks);

// The same for rows of `columns` numbers, where the squared errors of column i count importance[i] times, and
// each rounding error changes the later columns of its row by `feedback`. Types of 4 and 6 bits use both;
// null: none. REQUIRES: columns are whole blocks, importances are finite and at least 0; columns beyond those
// of `feedback` are in its last group.
void quantize_rows(BlockType t, const float* x, i64 rows, i64 columns, const float* importance,
                   const ErrorFeedback* feedback, unsigned char* blocks);

}  // namespace redco::gguf

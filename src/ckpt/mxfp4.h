// Experts in MXFP4, as gpt-oss stores them: two tensors of bytes, NAME_blocks and NAME_scales, in place of
// NAME.
//
// NAME has the shape (E, in, out). NAME_blocks (E, out, in / 32, 16) has the values of 4 bits (FP4 E2M1), two
// in a byte, the lower half first. NAME_scales (E, out, in / 32) has the exponent of each 32 values, plus 127
// (OCP Microscaling Formats 1.0).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ckpt/tensor_file.h"

namespace redco::ckpt {

inline constexpr i64 kMxfp4Values = 32;  // of a block, which takes 16 bytes and a scale

struct Mxfp4Layout {
  const TensorFile* scales_file;  // lives as long as the entry
  TensorEntry scales;
  i64 in, out;  // of a matrix
};

// Whether the entry is a NAME_blocks; *name: the NAME.
bool is_mxfp4_blocks(const TensorEntry& e, std::string* name);
// The entry of NAME in the blocks' file. ContentsError: the shapes of blocks and scales do not match.
TensorEntry mxfp4_entry(const std::string& name, const TensorFile& file, const TensorEntry& blocks,
                        const TensorFile& scales_file, const TensorEntry& scales);

// Decodes `blocks` blocks of 16 bytes with a scale each. Beyond the range of fp32 a value is infinite.
void decode_mxfp4(const unsigned char* bytes, const unsigned char* scales, i64 blocks, float* values);

// Reads a box of such an entry, whose shape may be a view of (E, in, out) with `out` as two dims, as floats.
// on_row gets a part of a matrix's row: its first element's index in the box's memory, the distance of its
// elements there, and the values.
void read_mxfp4(const ReadFile& file, const TensorEntry& e, const Box& box, const Strides& strides,
                const std::function<void(i64 memory, i64 stride, const float* values, i64 n)>& on_row);

}  // namespace redco::ckpt

// The tensors of a GGUF model under their Hugging Face names, dequantized during reading.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ckpt/tensor_file.h"
#include "gguf/tensor_names.h"

namespace redco::ckpt {

// How a tensor of a GGUF file is stored. Rows of the file are whole blocks.
struct GgufLayout {
  gguf::BlockType type;
  bool transposed = false;  // see gguf::FolderTensor
  i64 rotary_heads = 0;
  float add = 0;
  bool stack = false;  // see gguf::FolderTensor
  struct Odd {
    gguf::BlockType type;
    i64 offset;
  };
  std::optional<Odd> odd{};
};

// One file for each part of the model. ContentsError: as gguf::open_model() and gguf::folder_tensors().
std::vector<std::unique_ptr<TensorFile>> open_gguf(const std::string& path);

// Reads a box of a tensor with a GgufLayout as floats, row by row of the stored tensor. on_row gets each part
// of a row that lies in the box: its first element's index in the box, the distance of its elements there
// (strides of memory), and the values.
void read_gguf_rows(const ReadFile& file, const TensorEntry& e, const Box& box, const Strides& strides,
                    const std::function<void(i64 memory, i64 stride, const float* values, i64 n)>& on_row);

// The same as quantized blocks, see TensorFile::read_blocks.
void read_gguf_blocks(const ReadFile& file, const TensorEntry& e, const Box& box, std::byte* out);

// The type in memory with the same blocks; nullopt: there is none, since the numbers are not quantized.
std::optional<DType> memory_type(gguf::BlockType t);

}  // namespace redco::ckpt

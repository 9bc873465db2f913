// The tensors of a GGUF file under the names of a Hugging Face folder. llama.cpp's converters rename, permute
// and shift tensors; this undoes it.
#pragma once

#include <string>
#include <vector>

#include "gguf/header.h"

namespace redco::gguf {

// A tensor of the folder as a part of one of the file.
struct FolderTensor {
  std::string name;  // Hugging Face's
  const Tensor* stored;
  Shape shape;              // in the folder
  i64 offset;               // of its first byte in the file: experts are slices of a stack
  bool transposed = false;  // the file has the columns as rows: GPT-2's Conv1D
  i64 rotary_heads = 0;     // > 0: rows of each head are pairs of (even, odd), in place of two halves
  float add = 0;            // to each element: -1 for Gemma's norms, which are stored as 1 + w
};

// ContentsError: an architecture that redco doesn't read, a tensor without a name in the folder, a shape that
// contradicts the metadata. Tensors that a folder's config describes instead (rope_freqs) are absent.
std::vector<FolderTensor> folder_tensors(const Header& h);

// The architectures that folder_tensors() and folder_config() know, sorted.
std::vector<std::string> known_architectures();

}  // namespace redco::gguf

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
  // The experts of gpt-oss are one tensor (E, in, out) of the folder, and one of rows (E, out, in) of the
  // file; their biases (E, out) of both. Of two layers in one, `stored` has the even columns, `odd` the odd
  // ones.
  bool stack = false;
  const Tensor* odd = nullptr;
};

// ContentsError: an architecture that redco doesn't read, a tensor without a name in the folder, a shape that
// contradicts the metadata. Tensors that a folder's config describes instead (rope_freqs) are absent.
std::vector<FolderTensor> folder_tensors(const Header& h);

// The architectures that folder_tensors() and folder_config() know, sorted.
std::vector<std::string> known_architectures();

// The row of the file that holds row r of `rows` rows. llama.cpp stores the rows of a head of LLaMA's queries
// and keys as (i, i + D/2) pairs: row i of half s is at 2 i + s. heads 0: r itself.
i64 rotary_row(i64 heads, i64 rows, i64 r);

// A tensor of a file as it is made from tensors of a folder: the inverse of folder_tensors().
struct FileTensor {
  std::string name;                  // of the file
  Shape shape;                       // row-major, as Tensor::shape
  std::vector<std::string> sources;  // of the folder: one, or the experts of a stack in order
  bool transposed = false;
  i64 rotary_heads = 0;
  float add = 0;
  i64 stack_layers = 0;  // > 0: a stack of experts (FolderTensor::stack) with the columns of this many layers
  i64 stack_layer = 0;   // of which this is one
};
struct FolderName {
  std::string name;
  Shape shape;
};
struct FileShape {
  i64 heads = 0, kv_heads = 0, experts = 0;
};
// Tensors of the folder without a name in a file are appended to `unknown`. ContentsError: an expert is
// missing, or a matrix of queries has rows that the heads don't divide.
std::vector<FileTensor> file_tensors(const std::string& architecture, const FileShape& s,
                                     const std::vector<FolderName>& folder,
                                     std::vector<std::string>& unknown);

}  // namespace redco::gguf

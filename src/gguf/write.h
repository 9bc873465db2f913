// Writes a GGUF file (version 3): metadata, then tensors in the order of their plan.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/file.h"
#include "gguf/block_types.h"

namespace redco::gguf {

// u32 is the type of counts and ids in llama.cpp's keys.
using Metadata = std::variant<std::uint32_t, float, bool, std::string, std::vector<std::string>,
                              std::vector<std::int32_t>, std::vector<float>>;

struct PlannedTensor {
  std::string name;
  BlockType type;
  Shape shape;  // row-major
  i64 bytes() const;
};

class Writer {
 public:
  // The file appears under `path` with commit().
  Writer(const std::string& path, const std::vector<std::pair<std::string, Metadata>>& metadata,
         const std::vector<PlannedTensor>& tensors);
  // The next bytes of the tensors' data, in the order of the plan; a tensor may come in pieces.
  void append(const void* from, i64 n);
  void commit();  // REQUIRES: the bytes of all tensors

 private:
  std::vector<PlannedTensor> tensors_;
  std::size_t at_ = 0;  // the tensor that append() writes
  i64 written_ = 0;     // its bytes
  DurableFile file_;
};

}  // namespace redco::gguf

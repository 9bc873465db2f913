// Reads the pickle of a PyTorch file without executing it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "ckpt/stored_type.h"

namespace redco::ckpt {

// A tensor as the pickle describes it; not yet checked against the archive.
struct PickledTensor {
  std::string name;
  StoredType type;
  std::string storage;        // the archive's entry under data/
  i64 storage_numel, offset;  // in elements
  Shape shape;
  Strides steps;  // in elements, one per dim
};

// The dict from names to tensors of a pickle of protocol 2. ContentsError that begins with `where` and the
// byte for every opcode, function or value that torch.save doesn't write for a state dict.
std::vector<PickledTensor> read_torch_pickle(std::string_view pickle, const std::string& where);

}  // namespace redco::ckpt

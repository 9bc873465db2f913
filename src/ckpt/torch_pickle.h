// The pickle inside a PyTorch file, read without being run.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "ckpt/stored_type.h"

namespace redco::ckpt {

// A tensor as the pickle describes it; nothing about it is checked against the archive yet.
struct PickledTensor {
  std::string name;
  StoredType type;
  std::string storage;            // the archive's entry under data/
  i64 storage_numel, offset;      // in elements
  std::vector<i64> shape, steps;  // as many steps as dims, in elements
};

// The dict from names to tensors of a pickle of protocol 2. ContentsError, beginning with `where` and the
// byte, for every opcode, function or value beyond what torch.save writes of a state dict.
std::vector<PickledTensor> read_torch_pickle(std::string_view pickle, const std::string& where);

}  // namespace redco::ckpt

// Which parameters are quantized blocks of a GGUF file that stay as they are in memory.
#pragma once

#include <functional>
#include <string>

#include "ckpt/model_files.h"
#include "nn/param_tree.h"

namespace redco::ckpt {

// The type in memory of the blocks of a parameter, if its rows are rows of blocks in the file: no transpose
// and no sum comes between. nullopt: it is not quantized, or it has rows that the file lacks.
std::optional<DType> blocks_of(const ParamSpec& s, const TensorEntry& e);

// Sets ParamSpec::storage of each matrix that `files` have as quantized blocks. `canonical`: as
// load_params().
void keep_blocks(ModelParams& params, const ModelFiles& files,
                 const std::function<std::string(const std::string&)>& canonical);

}  // namespace redco::ckpt

// The hash of a model's weights: equal for equal files, wherever they are.
#pragma once

#include <string>

namespace redco::ckpt {

// Of all weights files in a folder (.safetensors, .bin and their index). Hashes of files come from the
// folder's manifest, if it has one (ckpt/manifest.h); other files are read once, and their hashes are kept in
// the user's cache folder with size, times and inode. IoError, UsageError: the folder cannot be read.
std::string weights_hash(const std::string& folder);
// It begins with this. Older versions hashed the first and last bytes of each file only, without it.
constexpr const char* kWeightsHash = "all:";

}  // namespace redco::ckpt

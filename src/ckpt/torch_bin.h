// Reading PyTorch's own files (pytorch_model.bin, what torch.save of a state dict writes since version 1.6):
// a zip archive of stored entries, of which data.pkl is a pickle that says which tensor lies where.
//
// A pickle is a program. This one isn't run: the few opcodes that a state dict needs are interpreted, with
// the few functions that rebuild tensors, and everything else is a ContentsError that names it and its byte.
// The archive is taken to be hostile: sizes and offsets are checked before use, compressed entries (nobody
// writes them, and they may be bombs) and overlapping ones are refused. Format:
// https://docs.pytorch.org/docs/stable/notes/serialization.html
#pragma once

#include <string>

#include "ckpt/tensor_file.h"

namespace redco::ckpt {

// The tensors of a state dict, by name; several may share bytes. UsageError if the file doesn't exist;
// ContentsError: a file of the format before 1.6 (with the line that converts it), a truncated one, anything
// but a flat dict from texts to dense tensors of types that redco knows (float64, 32, 16, bfloat16, int64,
// 32, 16, 8, uint8, bool).
TensorFile open_torch_bin(const std::string& path);

// The command that makes model.safetensors of a folder's .bin files with PyTorch.
std::string conversion_line(const std::string& folder);

}  // namespace redco::ckpt

// Reads PyTorch's own files (pytorch_model.bin; the format of torch.save for a state dict since version 1.6):
// a zip archive of uncompressed entries, in which the pickle data.pkl describes the tensors.
//
// A pickle is a program, but it is never executed. The few opcodes of a state dict are interpreted, with the
// few functions that rebuild tensors; anything else is a ContentsError that names it and its byte. The
// archive may be hostile: sizes and offsets are checked before use; compressed entries (torch.save never
// writes them, and they may be zip bombs) and overlapping entries are rejected. Format:
// https://docs.pytorch.org/docs/stable/notes/serialization.html
#pragma once

#include <string>

#include "ckpt/tensor_file.h"

namespace redco::ckpt {

// The tensors of a state dict, by name; several may share bytes. UsageError if the file doesn't exist.
// ContentsError: a file of the format before 1.6 (with the command that converts it), a truncated one,
// anything but a flat dict from texts to dense tensors of supported types (float64, 32, 16, bfloat16, int64,
// 32, 16, 8, uint8, bool).
TensorFile open_torch_bin(const std::string& path);

// The command that converts a folder's .bin files to model.safetensors with PyTorch.
std::string conversion_line(const std::string& folder);

}  // namespace redco::ckpt

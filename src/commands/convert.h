// `redco convert`: a model as a Hugging Face folder or as a GGUF file.
#pragma once

#include <string>

namespace redco {

struct ConvertOptions {
  std::string model;   // a folder, a GGUF file, an id in the hub's cache, or the folder of a LoRA adapter
  std::string to;      // "hf" or "gguf"
  std::string output;  // the folder or the file, which must not exist
  std::string dtype;   // f32, f16, bf16; also q8_0, q4_0, q4_1, q4_k, q6_k for gguf. "": f32 (hf), f16 (gguf)
  std::string base;    // of an adapter; "": the folder that its config names
  // A file as data.calibration, with whose texts importances of columns are measured; "": none.
  std::string calibration;
};

// Reads the output again: its config must equal the model's, and its tokenizer give the same ids. UsageError:
// the output exists, a type that `to` doesn't have. ContentsError: a family, setting or tokenizer that GGUF
// files can't hold; nothing is left at `output` then. IoError: the output can't be written.
int run_convert(const ConvertOptions& options);

}  // namespace redco

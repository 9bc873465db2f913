// The tensors of a Hugging Face folder, whether they lie in one file or in shards.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ckpt/tensor_file.h"

namespace redco::ckpt {

class ModelFiles {
 public:
  // A tensor and the file that holds it; both live as long as the ModelFiles.
  struct Located {
    const TensorFile* file;
    const TensorEntry* entry;
  };

  // Opens `STEM.safetensors`, else the shards that `STEM.safetensors.index.json` lists, else PyTorch's own
  // files, `STEM.bin` or those of `STEM.bin.index.json` (with pytorch_model for model), read without running
  // them (torch_bin.h). Tensors that a shard holds and the index doesn't list count too, as for transformers.
  // UsageError: no such folder. ContentsError: an index that isn't sound, a missing shard, a tensor that its
  // shard lacks or that two shards hold, a folder that has none of these files.
  static ModelFiles open(const std::string& folder, const std::string& stem = "model");

  const std::string& folder() const { return folder_; }
  const std::vector<Located>& tensors() const { return tensors_; }  // sorted by name
  const Located* find(std::string_view name) const;                 // nullptr: none
  const Located& at(std::string_view name) const;                   // ContentsError: none

  // See TensorFile::read.
  template <class T>
  void read(std::string_view name, const Box& box, T* out, const Strides& strides) const {
    const Located& l = at(name);
    l.file->read(*l.entry, box, out, strides);
  }

 private:
  std::string folder_;
  std::vector<std::unique_ptr<TensorFile>> files_;
  std::vector<Located> tensors_;
};

}  // namespace redco::ckpt

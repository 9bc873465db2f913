// The tensors of a Hugging Face folder, in one file or in shards.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ckpt/tensor_file.h"

namespace redco::ckpt {

class ModelFiles {
 public:
  // A tensor and its file; both live as long as the ModelFiles.
  struct Located {
    const TensorFile* file;
    const TensorEntry* entry;
  };

  // Opens `STEM.safetensors`, else the shards of `STEM.safetensors.index.json`, else PyTorch's files,
  // `STEM.bin` or those of `STEM.bin.index.json` (pytorch_model for model); their pickles are never executed
  // (torch_bin.h). If there is a single file and an index, a warning names both. Tensors in a shard that the
  // index doesn't list count too, as in transformers; of two copies the index chooses one. UsageError: no
  // such folder. ContentsError: an invalid index, a missing shard, a tensor that its shard lacks, one that
  // two shards have and the index doesn't list, a folder without any of these files. A folder with none of
  // them but a GGUF file has its tensors (gguf_file.h). Tensors in MXFP4 are one (mxfp4.h).
  static ModelFiles open(const std::string& folder, const std::string& stem = "model");

  const std::string& folder() const { return folder_; }
  const std::vector<Located>& tensors() const { return tensors_; }  // sorted by name
  const Located* find(std::string_view name) const;                 // nullptr: not found
  const Located& at(std::string_view name) const;                   // ContentsError: not found

  // See TensorFile::read.
  template <class T>
  void read(std::string_view name, const Box& box, T* out, const Strides& strides) const {
    const Located& l = at(name);
    l.file->read(*l.entry, box, out, strides);
  }

 private:
  std::string folder_;
  void join_mxfp4();

  std::vector<std::unique_ptr<TensorFile>> files_;
  std::vector<std::unique_ptr<TensorEntry>> joined_;  // entries of several stored tensors (mxfp4.h)
  std::vector<Located> tensors_;
};

}  // namespace redco::ckpt

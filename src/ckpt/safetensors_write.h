// Writes safetensors files: first a plan (every offset follows from names, types and shapes), then the data
// in any order.
//
// The plan is a pure function, so all ranks know the layout without communication. Each file has one writer,
// which receives the other ranks' slices and writes them at their offsets.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/scratch.h"
#include "ckpt/chunked_file.h"
#include "ckpt/manifest.h"
#include "ckpt/safetensors.h"

namespace redco::ckpt {

struct TensorPlan {
  std::string name;
  StoredType type;
  Shape shape;
};

// One file's layout. Tensors have the order of safetensors' own writer: wider types first, then by name, so
// that each is aligned; the header is padded with spaces to a multiple of 8.
struct FilePlan {
  std::string file;                                       // relative to the folder
  std::string head;                                       // its first bytes: size, JSON, padding
  std::vector<TensorEntry> entries;                       // sorted by name
  i64 bytes = 0;                                          // the whole file
  const TensorEntry* find(std::string_view name) const;   // null: it isn't planned
  const TensorEntry& entry(std::string_view name) const;  // BugError: it isn't planned
};
// transformers rejects a file without {"format": "pt"}. REQUIRES: names are unique and none is __metadata__.
FilePlan plan_file(std::string file, const std::vector<TensorPlan>& tensors,
                   const std::map<std::string, std::string>& metadata = {{"format", "pt"}});

// A model's files: one `STEM.safetensors`, or, if the tensors have more than max_file_bytes, shards
// `STEM-00001-of-00003.safetensors`, filled greedily in the given order, and the index for transformers.
// Tensors are not split, so a tensor larger than max_file_bytes makes a larger shard.
struct ModelPlan {
  std::vector<FilePlan> files;
  std::string index_name, index_json;  // "" for a single file
  i64 bytes = 0;                       // of all files and the index
  // Index of the file with a tensor; -1: none.
  i64 file_of(std::string_view name) const;
};
constexpr i64 kDefaultFileBytes = 5'000'000'000;
ModelPlan plan_model(const std::vector<TensorPlan>& tensors, i64 max_file_bytes = kDefaultFileBytes,
                     const std::string& stem = "model");

// Writes one planned file. Every byte must be written exactly once before commit(), in pieces of any size and
// order. Used by one thread at a time. Memory: that of the queue, and 5 MiB.
class SafetensorsWriter {
 public:
  // Reserves the file's space in `folder`, so that a full disk is an error here. The queue outlives the
  // writer; without one, the writer has its own. The next file of a queue is created when all bytes of this
  // one have been written.
  static SafetensorsWriter create(const std::string& folder, FilePlan plan, WriteQueue& queue);
  static SafetensorsWriter create(const std::string& folder, FilePlan plan);

  const FilePlan& plan() const { return plan_; }
  // Writes a box of a tensor from memory with `strides`, converted from T (float, double, i32, i64) to the
  // planned type. view: another shape of the tensor's elements, which the box is of; empty: its own.
  // UsageError: a value that this type can't represent (e.g. 70000 in F16).
  template <class T>
  void write(std::string_view name, const Box& box, const T* from, const Strides& strides,
             const Shape& view = {});
  template <class T>
  void write(std::string_view name, const Box& box, const T* from) {
    write(name, box, from, contiguous(box));
  }
  // Writes the stored bytes [begin, begin + n) of a tensor.
  void write_bytes(std::string_view name, i64 begin, const void* from, i64 n);
  // Makes the complete file durable under its name. BugError if a tensor lacks bytes.
  FileRecord commit();

 private:
  SafetensorsWriter(const std::string& folder, FilePlan plan, std::unique_ptr<WriteQueue> own,
                    WriteQueue& queue);
  size_t index(std::string_view name) const;
  template <class T>
  void write_transposed(std::string_view name, const Box& box, const T* from, i64 stride);
  void put(size_t entry, i64 begin, const void* from, i64 n);
  FilePlan plan_;
  std::unique_ptr<WriteQueue> own_;
  std::unique_ptr<ChunkedFile> file_;
  std::vector<i64> written_;  // bytes, per entry
  Scratch<unsigned char> encoded_, transposed_;
};

}  // namespace redco::ckpt

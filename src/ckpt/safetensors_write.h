// Writing safetensors files: planned first (every offset follows from names, types and shapes), then filled
// in any order.
//
// The plan is a pure function, so all ranks know the layout without talking; each file has one writer, which
// receives the others' slices and puts them where they belong.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "ckpt/safetensors.h"

namespace redco::ckpt {

struct TensorPlan {
  std::string name;
  StoredType type;
  Shape shape;
};

// One file's layout. Tensors lie in the order that safetensors' own writer uses: wider types first, then by
// name, so that each is aligned; the header is padded with spaces to a multiple of 8.
struct FilePlan {
  std::string file;                  // its name inside the folder
  std::string head;                  // its first bytes: size, JSON, padding
  std::vector<TensorEntry> entries;  // sorted by name
  i64 bytes = 0;                     // the whole file
};
// Without {"format": "pt"} transformers refuses a file. REQUIRES: names are unique and none is __metadata__.
FilePlan plan_file(std::string file, const std::vector<TensorPlan>& tensors,
                   const std::map<std::string, std::string>& metadata = {{"format", "pt"}});

// A model's files: one `STEM.safetensors`, or, when the tensors have more than max_file_bytes, shards
// `STEM-00001-of-00003.safetensors` filled greedily in the order given, and the index that transformers
// reads. A tensor is never cut, so one that is larger than max_file_bytes makes a larger shard.
struct ModelPlan {
  std::vector<FilePlan> files;
  std::string index_name, index_json;  // "" for a single file
  i64 bytes = 0;                       // of all files and the index
  // The file that holds a tensor; -1: none.
  i64 file_of(std::string_view name) const;
};
constexpr i64 kDefaultFileBytes = 5'000'000'000;
ModelPlan plan_model(const std::vector<TensorPlan>& tensors, i64 max_file_bytes = kDefaultFileBytes,
                     const std::string& stem = "model");

// Fills one planned file. Every byte must be written exactly once before commit(), in pieces of any size and
// order. Owned by one thread at a time. Memory: at most 16 MiB beside the caller's.
class SafetensorsWriter {
 public:
  // Reserves the file's space in `folder`: a full disk shows here.
  static SafetensorsWriter create(const std::string& folder, FilePlan plan);

  const FilePlan& plan() const { return plan_; }
  // A box of a tensor from memory laid out by `strides`, converted from T (float, double, i32, i64) to the
  // planned type. UsageError: a value that this type can't hold (e.g. 70000 in F16).
  template <class T>
  void write(std::string_view name, const Box& box, const T* from, const Strides& strides);
  template <class T>
  void write(std::string_view name, const Box& box, const T* from) {
    write(name, box, from, contiguous(box));
  }
  // Stored bytes [begin, begin + n) of a tensor.
  void write_bytes(std::string_view name, i64 begin, const void* from, i64 n);
  // The file is on the disk, whole, under its name. BugError if a tensor lacks bytes.
  void commit();

 private:
  SafetensorsWriter(FilePlan plan, DurableFile file)
      : plan_(std::move(plan)), file_(std::move(file)), written_(plan_.entries.size(), 0) {}
  size_t index(std::string_view name) const;
  void put(size_t entry, i64 begin, const void* from, i64 n);
  FilePlan plan_;
  DurableFile file_;
  std::vector<i64> written_;  // bytes, per entry
};

}  // namespace redco::ckpt

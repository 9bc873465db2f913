// A file of named tensors in any format: their offsets, and reads of boxes into memory.
//
// Boxes allow a rank to read only its shard, through a buffer of 4 MiB. The file is never mapped, so memory
// is limited to what the caller holds.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/scratch.h"
#include "base/types.h"
#include "ckpt/box.h"
#include "ckpt/stored_type.h"

namespace redco::ckpt {

struct GgufLayout;   // ckpt/gguf_file.h
struct Mxfp4Layout;  // ckpt/mxfp4.h

struct TensorEntry {
  std::string name;
  StoredType type;
  Shape shape;           // () has one element
  i64 offset;            // of the first element's first byte, from the beginning of the file
  i64 bytes;             // numel * size_of(type)
  Strides strides = {};  // of the elements in the file; empty: row-major, without gaps
  std::shared_ptr<const GgufLayout> gguf = {};  // blocks of a GGUF file; `type` is then what they decode to
  std::shared_ptr<const Mxfp4Layout> mxfp4 = {};

  // The same elements with another shape: one dim as two. REQUIRES: no GgufLayout, or that of a stack.
  TensorEntry viewed(const Shape& view) const;
};

constexpr i64 kBufferBytes = 4 << 20;

class TensorFile {
 public:
  // Takes valid entries, in any order: every element is inside the file.
  TensorFile(ReadFile file, std::vector<TensorEntry> entries);
  TensorFile(TensorFile&&) = default;
  TensorFile& operator=(TensorFile&&) = default;
  virtual ~TensorFile() = default;

  const std::string& path() const { return file_.path(); }
  const std::vector<TensorEntry>& entries() const { return entries_; }  // sorted by name
  const TensorEntry* find(std::string_view name) const;                 // nullptr: not found
  const TensorEntry& at(std::string_view name) const;                   // ContentsError: not found

  // Reads a box into memory with `strides`, converted to T (float, double, i32, i64). `out` is the address of
  // the box's first element. Integers in memory need integers or booleans in the file; a value that doesn't
  // fit is a ContentsError. `e` is one of this file's entries. Thread-safe. Values that need no conversion
  // are read to their place; all others pass through `buffer`, which a loop of reads can keep.
  template <class T>
  void read(const TensorEntry& e, const Box& box, T* out, const Strides& strides,
            Scratch<unsigned char>& buffer) const;
  template <class T>
  void read(const TensorEntry& e, const Box& box, T* out, const Strides& strides) const {
    Scratch<unsigned char> buffer;
    read(e, box, out, strides, buffer);
  }
  template <class T>
  void read(const TensorEntry& e, const Box& box, T* out) const {
    read(e, box, out, contiguous(box));
  }
  // Reads a box of a matrix of a GGUF file as its quantized blocks: row after row of the stored matrix.
  // REQUIRES: e.gguf, the box has two dims and cuts no blocks.
  void read_blocks(const TensorEntry& e, const Box& box, std::byte* out) const;
  // Reads the whole tensor.
  template <class T>
  std::vector<T> read(const TensorEntry& e) const;

 private:
  ReadFile file_;
  std::vector<TensorEntry> entries_;
};

}  // namespace redco::ckpt

// Reading safetensors files: `u64 header size, JSON header, data`, little-endian
// (https://huggingface.co/docs/safetensors/index). The file is taken to be hostile: open() checks everything
// the header says before anything else uses it, and what it can't vouch for is a ContentsError that names
// file and tensor.
//
// Tensors are read in boxes, so that a rank reads its shard alone, through a buffer of 4 MiB; the
// file is never mapped, so memory stays at what the caller holds.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/types.h"
#include "ckpt/box.h"
#include "ckpt/stored_type.h"

namespace redco::ckpt {

struct TensorEntry {
  std::string name;
  StoredType type;
  Shape shape;  // () holds one element
  i64 offset;   // of its first byte, from the beginning of the file
  i64 bytes;    // numel * size_of(type)
};

constexpr i64 kMaxHeaderBytes = 100'000'000;
constexpr i64 kBufferBytes = 4 << 20;

struct Header {
  std::vector<TensorEntry> entries;  // sorted by name
  std::map<std::string, std::string> metadata;
};

// The header's JSON, of a file of file_bytes whose data begin at data_offset. `path` is for messages only.
// ContentsError on: invalid JSON or UTF-8, duplicate names, unknown types, missing or unknown fields, shapes
// and offsets that aren't whole numbers from 0 on or overflow, a size that isn't shape x type, holes,
// overlaps, bytes beyond the end or behind the last tensor.
Header parse_header(std::string_view json, i64 data_offset, i64 file_bytes, const std::string& path);

class SafetensorsFile {
 public:
  // UsageError if the file doesn't exist, ContentsError if it isn't sound.
  static SafetensorsFile open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const std::vector<TensorEntry>& entries() const { return header_.entries; }  // sorted by name
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  const TensorEntry* find(std::string_view name) const;  // nullptr: none
  const TensorEntry& at(std::string_view name) const;    // ContentsError: none, with the nearest name

  // Reads a box into memory laid out by `strides`, converted to T (float, double, i32, i64). `out` is the
  // address of the box's first element. Only integers and booleans are read into integers; a value that
  // doesn't fit is a ContentsError. `e` is one of this file's entries. May be called by several threads at
  // once.
  template <class T>
  void read(const TensorEntry& e, const Box& box, T* out, const Strides& strides) const;
  template <class T>
  void read(const TensorEntry& e, const Box& box, T* out) const {
    read(e, box, out, contiguous(box));
  }
  // The whole tensor.
  template <class T>
  std::vector<T> read(const TensorEntry& e) const;
  // The stored bytes [begin, end) of a tensor, as they are.
  void read_bytes(const TensorEntry& e, i64 begin, i64 end, void* out) const;

  void read_f32(const TensorEntry& e, const Box& box, float* out, const Strides& s) const {
    read(e, box, out, s);
  }
  void read_f64(const TensorEntry& e, const Box& box, double* out, const Strides& s) const {
    read(e, box, out, s);
  }
  void read_i32(const TensorEntry& e, const Box& box, i32* out, const Strides& s) const {
    read(e, box, out, s);
  }
  void read_i64(const TensorEntry& e, const Box& box, i64* out, const Strides& s) const {
    read(e, box, out, s);
  }

 private:
  SafetensorsFile(ReadFile file, Header header) : file_(std::move(file)), header_(std::move(header)) {}
  ReadFile file_;
  Header header_;
};

}  // namespace redco::ckpt

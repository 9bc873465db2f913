// Reads safetensors files: `u64 header size, JSON header, data`, little-endian
// (https://huggingface.co/docs/safetensors/index). Files may be hostile: open() checks the whole header
// before any use. Anything it can't verify is a ContentsError that names file and tensor.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ckpt/tensor_file.h"

namespace redco::ckpt {

constexpr i64 kMaxHeaderBytes = 100'000'000;

struct Header {
  std::vector<TensorEntry> entries;  // sorted by name
  std::map<std::string, std::string> metadata;
};

// Parses the JSON header of a file of file_bytes whose data begin at data_offset. `path` is for messages
// only. ContentsError on: invalid JSON or UTF-8, duplicate names, unknown types, missing or unknown fields,
// shapes and offsets that are negative, not integers or overflow, a size that isn't shape x type, holes,
// overlaps, bytes beyond the end or after the last tensor.
Header parse_header(std::string_view json, i64 data_offset, i64 file_bytes, const std::string& path);

class SafetensorsFile : public TensorFile {
 public:
  // UsageError if the file doesn't exist, ContentsError if it is invalid.
  static SafetensorsFile open(const std::string& path);

  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  SafetensorsFile(ReadFile file, Header header)
      : TensorFile(std::move(file), std::move(header.entries)), metadata_(std::move(header.metadata)) {}
  std::map<std::string, std::string> metadata_;
};

}  // namespace redco::ckpt

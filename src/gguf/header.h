// The header of a GGUF file (ggml, docs/gguf.md, versions 2 and 3): metadata and tensors. Little-endian.
//
// The file may have been made by anybody: every length is checked against the file's size before memory is
// allocated for it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/file.h"
#include "base/types.h"
#include "gguf/block_types.h"

namespace redco::gguf {

// A value of the metadata. Integers of all widths are i64, or u64 above its range; floats are double.
struct Value {
  std::variant<bool, i64, u64, double, std::string, std::vector<bool>, std::vector<i64>, std::vector<double>,
               std::vector<std::string>>
      held;
};

struct Tensor {
  std::string name;
  BlockType type;
  Shape shape;        // row-major: the file's dims are stored innermost first
  i64 offset, bytes;  // of its data, from the beginning of its file
  int part = 0;       // the index of its file in a split model
};

// Metadata with typed access. Errors name the file and the key: ContentsError.
class Header {
 public:
  std::string path;
  std::map<std::string, Value> values;
  std::vector<Tensor> tensors;  // in the order of the file

  bool has(const std::string& key) const { return values.count(key) > 0; }
  std::optional<std::string> text(const std::string& key) const;
  std::optional<i64> integer(const std::string& key) const;
  std::optional<double> number(const std::string& key) const;  // of an integer too
  std::optional<bool> boolean(const std::string& key) const;
  const std::vector<std::string>* texts(const std::string& key) const;  // nullptr: absent
  std::optional<std::vector<i64>> integers(const std::string& key) const;
  std::optional<std::vector<double>> numbers(const std::string& key) const;
  i64 at_integer(const std::string& key) const;  // ContentsError: absent
  std::string at_text(const std::string& key) const;

  const Tensor* find(const std::string& name) const;  // nullptr: not found
};

// Reads and checks the header. ContentsError: no GGUF file, an unknown version or type, a big-endian file, a
// length or a tensor outside of the file, a name twice.
Header read_header(const ReadFile& file);

// A model in one file, or in all of NAME-00001-of-00003.gguf, of which any may be given.
struct Model {
  std::vector<ReadFile> parts;
  Header header;  // the first part's metadata, and the tensors of all parts
};
// ContentsError: as read_header(); a part is missing, or two parts have a tensor of the same name.
Model open_model(const std::string& path);

}  // namespace redco::gguf

// The footer of a Parquet file: its columns and where their data are.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "base/types.h"

namespace redco {

enum class ParquetType : std::uint8_t { boolean, int32, int64, int96, float32, float64, bytes, fixed };

// What a value means besides its type.
enum class ParquetMeaning : std::uint8_t { none, text, decimal, unsigned_integer, float16 };

// A node of the schema: a leaf is a column, others are structs and lists.
struct ParquetNode {
  std::string name;
  bool optional = false, repeated = false;
  bool is_list = false, is_map = false;  // by its annotation
  std::vector<ParquetNode> children;     // empty: a leaf
  // Of a leaf.
  std::size_t column = 0;  // its number
  ParquetType type = ParquetType::bytes;
  ParquetMeaning meaning = ParquetMeaning::none;
  i64 type_length = 0;  // bytes of a fixed value
  int scale = 0;        // of a decimal
  // Of an integer: the names of its classes, from the metadata that the library datasets writes (ClassLabel).
  std::vector<std::string> class_names;
  // Definition level at which the node is there, and repetition level of its elements.
  int definition = 0, repetition = 0;
};

struct ParquetChunk {
  i64 codec = 0, n_values = 0;
  i64 begin = 0, size = 0;  // bytes in the file, with the dictionary's page
};

struct ParquetRowGroup {
  i64 n_rows = 0;
  std::vector<ParquetChunk> chunks;  // by column
};

struct ParquetFooter {
  ParquetNode root;  // its children are the columns of the table
  std::vector<const ParquetNode*> leaves;
  std::vector<ParquetRowGroup> groups;
};

// ContentsError with the file's name: no Parquet file, a damaged or encrypted one.
ParquetFooter read_parquet_footer(const ReadFile& file);

}  // namespace redco

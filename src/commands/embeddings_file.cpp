#include "commands/embeddings_file.h"

#include <bit>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "ckpt/safetensors_write.h"

namespace redco {

namespace {

static_assert(std::endian::native == std::endian::little);  // both formats

bool is_npy(const std::string& path) { return path.ends_with(".npy"); }

// The row of a line of predictions.
std::vector<float> row_of(const std::string& line, const std::string& where) {
  const auto j = parse_json_line(line, "[embed] " + where);
  const auto it = j.find("embedding");
  if (it == j.end() || !it->is_array() || it->empty())
    throw ContentsError(
        "[embed] {}: the answer has no \"embedding\", so it can't be a row of a matrix. Name a .jsonl file as "
        "predict.output",
        where);
  for (const auto& x : *it)
    if (!x.is_number())
      throw ContentsError("[embed] {}: the embedding has the value {}; expected numbers", where, x.dump());
  return it->get<std::vector<float>>();
}

// NumPy's format 1.0: the magic, the version, the length of the header, the header.
std::string npy_head(i64 rows, i64 columns) {
  std::string header =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, columns);
  constexpr std::size_t kBefore = 10, kAlign = 64;
  header.append((kAlign - (kBefore + header.size() + 1) % kAlign) % kAlign, ' ');
  header += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(header.size() & 255);
  out += static_cast<char>(header.size() >> 8);
  return out + header;
}

}  // namespace

bool is_matrix_file(const std::string& path) { return is_npy(path) || path.ends_with(".safetensors"); }

void write_matrix_file(const std::string& predictions, const std::string& path) {
  i64 rows = 0, columns = 0;
  {
    JsonLines lines(predictions);
    for (std::string line; lines.next(line); ++rows)
      if (rows == 0) columns = static_cast<i64>(row_of(line, lines.where()).size());
  }
  const std::string head =
      is_npy(path)
          ? npy_head(rows, columns)
          : ckpt::plan_file(file_name(path), {{"embeddings", ckpt::StoredType::f32, {rows, columns}}}).head;
  DurableFile file = DurableFile::create(path);
  file.append(head);
  JsonLines lines(predictions);
  std::string bytes;
  for (std::string line; lines.next(line);) {
    const std::vector<float> row = row_of(line, lines.where());
    if (static_cast<i64>(row.size()) != columns)
      throw ContentsError("[embed] {}: the embedding has {} numbers, the first one {}", lines.where(),
                          row.size(), columns);
    bytes.append(reinterpret_cast<const char*>(row.data()), row.size() * sizeof(float));
    if (bytes.size() < (std::size_t{1} << 20)) continue;
    file.append(bytes);
    bytes.clear();
  }
  file.append(bytes);
  file.commit();
}

}  // namespace redco

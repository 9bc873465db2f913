#include "data/parquet/column_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "data/parquet/class_names.h"
#include "data/parquet/decompress.h"
#include "data/parquet/encodings.h"
#include "data/parquet/thrift.h"

namespace redco {

namespace {

constexpr i64 kMaxPage = i64{256} << 20, kMaxPageValues = i64{1} << 26;
constexpr i64 kMaxPageHeader = 1 << 16;

struct PageHeader {
  i64 type = -1, size = -1, packed_size = -1, n_values = 0, encoding = 0;
  i64 definition_bytes = 0, repetition_bytes = 0;  // version 2
  i64 definition_encoding = 3, repetition_encoding = 3;
  bool compressed = true;
  i64 bytes = 0;  // of the header
};

PageHeader read_page_header(std::string_view bytes) {
  PageHeader h;
  ThriftReader in(bytes);
  in.fields([&](i64 id, ThriftReader::Type type) {
    if (type == ThriftReader::i32 && id >= 1 && id <= 3) {
      (id == 1 ? h.type : id == 2 ? h.size : h.packed_size) = in.integer();
      return true;
    }
    if (type != ThriftReader::structure || (id != 5 && id != 7 && id != 8)) return false;
    in.fields([&](i64 field, ThriftReader::Type t) {
      if (id == 8 && field == 7) h.compressed = t != ThriftReader::no;
      if (t != ThriftReader::i32) return false;
      const i64 v = in.integer();
      if (field == 1) h.n_values = v;
      if (id == 8) {
        if (field == 4) h.encoding = v;
        if (field == 5) h.definition_bytes = v;
        if (field == 6) h.repetition_bytes = v;
      } else {
        if (field == 2) h.encoding = v;
        if (field == 3) h.definition_encoding = v;
        if (field == 4) h.repetition_encoding = v;
      }
      return true;
    });
    return true;
  });
  h.bytes = static_cast<i64>(in.position());
  if (h.size < 0 || h.size > kMaxPage || h.packed_size < 0 || h.packed_size > kMaxPage || h.n_values < 0 ||
      h.n_values > kMaxPageValues || h.definition_bytes < 0 || h.repetition_bytes < 0)
    throw ContentsError("the header of a page is damaged");
  return h;
}

std::vector<std::uint8_t> levels(std::string_view bytes, int most, std::size_t n) {
  std::vector<std::uint8_t> out;
  for (const u32 v : decode_runs(bytes, std::bit_width(static_cast<unsigned>(most)), n)) {
    if (v > static_cast<u32>(most)) throw ContentsError("a page is damaged: a level is out of range");
    out.push_back(static_cast<std::uint8_t>(v));
  }
  return out;
}

std::string_view cut(std::string_view& from, std::size_t n) {
  if (n > from.size()) throw ContentsError("a page is damaged: it has too few bytes");
  const std::string_view out = from.substr(0, n);
  from.remove_prefix(n);
  return out;
}

// The levels of version 1, with their size in front.
std::string_view sized(std::string_view& from, i64 encoding) {
  if (encoding != 3) throw UsageError("its levels have the encoding {}, which redco does not read", encoding);
  u32 n = 0;
  std::memcpy(&n, cut(from, 4).data(), 4);
  return cut(from, n);
}

}  // namespace

ParquetColumn::ParquetColumn(const ReadFile& file, const ParquetNode& leaf, const ParquetChunk& chunk)
    : file_(file), leaf_(leaf), chunk_(chunk) {}

void ParquetColumn::load_page() {
  level_ = n_levels_ = value_ = 0;
  std::string head(static_cast<std::size_t>(std::min(kMaxPageHeader, chunk_.size - at_)), '\0');
  if (head.empty()) throw ContentsError("column {} has too few pages", leaf_.name);
  file_.pread_exact(chunk_.begin + at_, head.data(), static_cast<i64>(head.size()));
  const PageHeader h = read_page_header(head);
  if (h.packed_size > chunk_.size - at_ - h.bytes)
    throw ContentsError("a page of column {} is longer than its column", leaf_.name);
  std::string stored(static_cast<std::size_t>(h.packed_size), '\0');
  file_.pread_exact(chunk_.begin + at_ + h.bytes, stored.data(), h.packed_size);
  at_ += h.bytes + h.packed_size;
  const auto n = static_cast<std::size_t>(h.n_values), size = static_cast<std::size_t>(h.size);
  if (h.type == 1) return;  // an index
  if (h.type == 2) {
    read_dictionary(unpack_parquet(chunk_.codec, stored, size), n, h.encoding);
    return;
  }
  if (h.type != 0 && h.type != 3) throw ContentsError("a page of column {} is of unknown type", leaf_.name);
  std::string unpacked;
  std::string_view body;
  std::string_view definitions, repetitions;
  if (h.type == 3) {
    std::string_view packed = stored;
    repetitions = cut(packed, static_cast<std::size_t>(h.repetition_bytes));
    definitions = cut(packed, static_cast<std::size_t>(h.definition_bytes));
    const std::size_t before = repetitions.size() + definitions.size();
    if (size < before) throw ContentsError("the header of a page is damaged");
    if (h.compressed && size > before)
      body = unpacked = unpack_parquet(chunk_.codec, packed, size - before);
    else
      body = packed;
  } else {
    body = unpacked = unpack_parquet(chunk_.codec, stored, size);
    if (leaf_.repetition > 0) repetitions = sized(body, h.repetition_encoding);
    if (leaf_.definition > 0) definitions = sized(body, h.definition_encoding);
  }
  repetitions_.clear();
  definitions_.clear();
  if (leaf_.repetition > 0) repetitions_ = levels(repetitions, leaf_.repetition, n);
  if (leaf_.definition > 0) definitions_ = levels(definitions, leaf_.definition, n);
  const std::size_t there =
      leaf_.definition == 0
          ? n
          : static_cast<std::size_t>(std::count(definitions_.begin(), definitions_.end(), leaf_.definition));
  read_values(h.encoding, body, there);
  n_levels_ = n;
  n_read_ += h.n_values;
}

void ParquetColumn::read_dictionary(std::string_view bytes, std::size_t n, i64 encoding) {
  if (encoding != 0 && encoding != 2)
    throw ContentsError("the dictionary of column {} is damaged", leaf_.name);
  dictionary_ = decode_values(leaf_, 0, bytes, n);
}

void ParquetColumn::read_values(i64 encoding, std::string_view bytes, std::size_t n) {
  values_.clear();
  indices_.clear();
  indexed_ = encoding == 2 || encoding == 8;
  if (!indexed_) {
    values_ = decode_values(leaf_, encoding, bytes, n);
    return;
  }
  if (n == 0) return;
  const int width = static_cast<std::uint8_t>(cut(bytes, 1)[0]);
  indices_ = decode_runs(bytes, width, n);
  for (const u32 i : indices_)
    if (i >= dictionary_.size())
      throw ContentsError("column {} has an index outside its dictionary", leaf_.name);
}

bool ParquetColumn::peek(int& definition, int& repetition) {
  while (level_ == n_levels_) {
    if (n_read_ >= chunk_.n_values) return false;
    load_page();
  }
  definition = definitions_.empty() ? 0 : definitions_[level_];
  repetition = repetitions_.empty() ? 0 : repetitions_[level_];
  return true;
}

ParquetColumn::Json ParquetColumn::take() {
  int definition = 0, repetition = 0;
  if (!peek(definition, repetition)) throw ContentsError("column {} has too few values", leaf_.name);
  ++level_;
  if (definition < leaf_.definition) return nullptr;
  const std::size_t i = value_++;
  Json value = indexed_ ? dictionary_[indices_[i]] : std::move(values_[i]);
  return leaf_.class_names.empty() ? value : class_name(leaf_.class_names, leaf_.name, value);
}

}  // namespace redco

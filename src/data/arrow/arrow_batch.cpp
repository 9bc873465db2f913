#include "data/arrow/arrow_batch.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "data/images/image_text.h"
#include "data/parquet/class_names.h"
#include "data/text/cell_values.h"

namespace redco {

namespace {

constexpr i64 kMaxUnpacked = i64{1} << 31;  // bytes of a compressed buffer
constexpr i64 kMaxLength = i64{1} << 40;    // values of an array
constexpr std::size_t kMaxRow = std::size_t{512} << 20;
constexpr int kMaxValueDepth = 100;  // of lists, structs and dictionaries

template <class T>
T number_at(std::string_view bytes, i64 i) {
  T v;
  const auto at = static_cast<std::size_t>(i) * sizeof v;
  if (i < 0 || at > bytes.size() || sizeof v > bytes.size() - at) throw ContentsError("a batch is damaged");
  std::memcpy(&v, bytes.data() + at, sizeof v);
  return v;
}

i64 offset_at(std::string_view bytes, i64 width, i64 i) {
  return width == 4 ? number_at<i32>(bytes, i) : number_at<i64>(bytes, i);
}

bool bit_at(std::string_view bytes, i64 i) {
  return (static_cast<std::uint8_t>(bytes[static_cast<std::size_t>(i / 8)]) >> (i % 8) & 1) != 0;
}

std::string_view slice(std::string_view bytes, i64 begin, i64 size) {
  const auto n = static_cast<i64>(bytes.size());
  if (begin < 0 || size < 0 || begin > n || size > n - begin)
    throw ContentsError("a batch is damaged: a value lies outside of its buffer");
  return bytes.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(size));
}

ArrowValues::Json integer_at(std::string_view bytes, i64 width, bool is_signed, i64 i) {
  switch (width) {
    case 1:
      if (is_signed) return number_at<std::int8_t>(bytes, i);
      return number_at<std::uint8_t>(bytes, i);
    case 2:
      if (is_signed) return number_at<std::int16_t>(bytes, i);
      return number_at<std::uint16_t>(bytes, i);
    case 4:
      if (is_signed) return number_at<i32>(bytes, i);
      return number_at<u32>(bytes, i);
    default:
      if (is_signed) return number_at<i64>(bytes, i);
      return number_at<u64>(bytes, i);
  }
}

}  // namespace

// Takes nodes and buffers in the order of the fields.
class ArrowBatch::Reader {
 public:
  Reader(const FlatTable& batch, ArrowBatch& out) : batch_(batch), out_(out) {
    if (!batch.has(3)) return;
    compressed_ = true;
    const FlatTable compression = batch.table(3);
    if (compression.number<std::int8_t>(0, 0) != 1 || compression.number<std::int8_t>(1, 0) != 0)
      throw UsageError(
          "the data are compressed with LZ4; redco reads uncompressed Arrow data and zstd. Write the data set as "
          "Parquet: dataset.to_parquet('data.parquet')");
  }

  ArrowArray array(const ArrowField& f) {
    ArrowArray a;
    if (node_ >= batch_.n_elements(1)) throw ContentsError("a batch has too few columns");
    a.length = batch_.element_number(1, node_, 0, 2);
    const i64 n_null = batch_.element_number(1, node_++, 1, 2);
    if (a.length < 0 || a.length > kMaxLength)
      throw ContentsError("a batch is damaged: the length of {}", f.name);
    if (f.layout == ArrowLayout::null && !f.dictionary) return a;
    a.validity = buffer();
    if (n_null == 0) a.validity = {};
    if (!a.validity.empty()) need(f, a.validity, (a.length + 7) / 8);
    if (f.dictionary) {
      a.data = sized(f, a.length * f.index_width);
      return a;
    }
    switch (f.layout) {
      case ArrowLayout::null:
        break;
      case ArrowLayout::boolean:
        a.data = sized(f, (a.length + 7) / 8);
        break;
      case ArrowLayout::integer:
      case ArrowLayout::real:
      case ArrowLayout::decimal:
      case ArrowLayout::fixed:
        if (f.width > 0 && a.length > kMaxLength / f.width) need(f, {}, kMaxLength);
        a.data = sized(f, a.length * f.width);
        break;
      case ArrowLayout::text:
        a.offsets = sized(f, a.length == 0 ? 0 : (a.length + 1) * f.width);
        a.data = buffer();
        break;
      case ArrowLayout::view:
        a.data = sized(f, a.length * f.width);
        add_variadic(f, a);
        break;
      case ArrowLayout::list:
        a.offsets = sized(f, a.length == 0 ? 0 : (a.length + 1) * f.width);
        a.children.push_back(array(f.children[0]));
        break;
      case ArrowLayout::fixed_list:
      case ArrowLayout::structure:
        for (const ArrowField& c : f.children) a.children.push_back(array(c));
        break;
    }
    const i64 per = f.layout == ArrowLayout::fixed_list ? f.width : 1;
    if (f.layout == ArrowLayout::fixed_list || f.layout == ArrowLayout::structure)
      for (const ArrowArray& c : a.children)
        if (per > 0 && a.length > c.length / per)
          throw ContentsError("a batch is damaged: the parts of column {} have different lengths", f.name);
    return a;
  }

 private:
  static void need(const ArrowField& f, std::string_view bytes, i64 size) {
    if (size > static_cast<i64>(bytes.size()))
      throw ContentsError("a batch is damaged: column {} has {} bytes, and needs {}", f.name, bytes.size(),
                          size);
  }
  std::string_view sized(const ArrowField& f, i64 size) {
    const std::string_view b = buffer();
    need(f, b, size);
    return b;
  }
  void add_variadic(const ArrowField& f, ArrowArray& a) {
    if (view_ >= batch_.n_elements(4))
      throw ContentsError("a batch is damaged: the buffers of column {}", f.name);
    for (i64 n = batch_.element_number(4, view_++); n > 0; --n) a.more.push_back(buffer());
  }
  std::string_view buffer() {
    if (buffer_ >= batch_.n_elements(2)) throw ContentsError("a batch has too few buffers");
    const i64 begin = batch_.element_number(2, buffer_, 0, 2), size = batch_.element_number(2, buffer_, 1, 2);
    ++buffer_;
    const std::string_view stored = slice(out_.body_, begin, size);
    if (!compressed_ || stored.empty()) return stored;
    const i64 unpacked = number_at<i64>(stored, 0);  // in front; -1: not compressed
    const std::string_view packed = stored.substr(8);
    if (unpacked == -1) return packed;
    if (unpacked < 0 || unpacked > kMaxUnpacked)
      throw ContentsError("a batch is damaged: the size of a buffer");
    std::string& to = out_.unpacked_.emplace_back(static_cast<std::size_t>(unpacked), '\0');
    if (ZSTD_decompress(to.data(), to.size(), packed.data(), packed.size()) != to.size())
      throw ContentsError("a batch is damaged: its zstd data do not unpack");
    return to;
  }

  const FlatTable& batch_;
  ArrowBatch& out_;
  bool compressed_ = false;
  std::size_t node_ = 0, buffer_ = 0, view_ = 0;
};

ArrowBatch::ArrowBatch(const std::vector<ArrowField>& fields, const FlatTable& batch, std::string stored_body)
    : n_rows(batch.number<i64>(0, 0)), body_(std::move(stored_body)) {
  Reader reader(batch, *this);
  for (const ArrowField& f : fields) columns.push_back(reader.array(f));
  for (const ArrowArray& a : columns)
    if (a.length != n_rows) throw ContentsError("a batch is damaged: its columns have different lengths");
}

void ArrowValues::spend(std::size_t bytes) {
  spent_ += bytes;
  if (spent_ > kMaxRow) throw ContentsError("the row has more than 512 MiB");
}

ArrowValues::Json ArrowValues::value(const ArrowField& f, const ArrowArray& a, i64 i, bool is_index) {
  spend(16);
  if (i < 0 || i >= a.length) throw ContentsError("a batch is damaged: an index of column {}", f.name);
  if (!a.validity.empty() && !bit_at(a.validity, i)) return nullptr;
  if (++depth_ > kMaxValueDepth) throw ContentsError("column {} is nested too deeply", f.name);
  Json v = is_index ? entry(f, a, i) : stored(f, a, i);
  --depth_;
  return v;
}

ArrowValues::Json ArrowValues::entry(const ArrowField& f, const ArrowArray& indices, i64 i) {
  const Json index = integer_at(indices.data, f.index_width, f.index_signed, i);
  i64 k =
      index.is_number_unsigned() && index.get<u64>() > static_cast<u64>(kMaxLength) ? -1 : index.get<i64>();
  if (const auto it = dictionaries_.find(*f.dictionary); it != dictionaries_.end() && k >= 0)
    for (const ArrowBatch& part : it->second) {
      if (k < part.n_rows) return value(f, part.columns[0], k, false);
      k -= part.n_rows;
    }
  throw ContentsError("column {} has an index outside of its dictionary", f.name);
}

ArrowValues::Json ArrowValues::stored(const ArrowField& f, const ArrowArray& a, i64 i) {
  switch (f.layout) {
    case ArrowLayout::null:
      return nullptr;
    case ArrowLayout::boolean:
      return bit_at(a.data, i);
    case ArrowLayout::integer: {
      const Json v = integer_at(a.data, f.width, f.is_signed, i);
      return f.class_names.empty() ? v : class_name(f.class_names, f.name, v);
    }
    case ArrowLayout::real:
      if (f.width == 2) return half_cell(number_at<std::uint16_t>(a.data, i));
      return real_cell(f.width == 4 ? number_at<float>(a.data, i) : number_at<double>(a.data, i));
    case ArrowLayout::decimal: {
      std::string bytes(slice(a.data, i * f.width, f.width));  // the lowest byte first
      std::ranges::reverse(bytes);
      return decimal_of_bytes(bytes, f.scale);
    }
    case ArrowLayout::fixed:
      return text(f, slice(a.data, i * f.width, f.width));
    case ArrowLayout::text: {
      const i64 begin = offset_at(a.offsets, f.width, i), end = offset_at(a.offsets, f.width, i + 1);
      return text(f, slice(a.data, begin, end < begin ? -1 : end - begin));
    }
    case ArrowLayout::view: {
      // The size, then up to 12 bytes of text; or 4 of them, the number of a buffer, and the place in it.
      const i64 size = number_at<i32>(a.data, 4 * i);
      if (size <= 12) return text(f, slice(a.data, 16 * i + 4, size));
      const i64 k = number_at<i32>(a.data, 4 * i + 2);
      if (k < 0 || k >= static_cast<i64>(a.more.size()))
        throw ContentsError("a batch is damaged: a view of column {}", f.name);
      return text(f, slice(a.more[static_cast<std::size_t>(k)], number_at<i32>(a.data, 4 * i + 3), size));
    }
    case ArrowLayout::list:
    case ArrowLayout::fixed_list:
      return list(f, a, i);
    case ArrowLayout::structure:
      break;
  }
  Json object = Json::object();
  for (std::size_t k = 0; k < f.children.size(); ++k)
    object[f.children[k].name] = value(f.children[k], a.children[k], i);
  join_media_parts(object);
  return object;
}

ArrowValues::Json ArrowValues::list(const ArrowField& f, const ArrowArray& a, i64 i) {
  const bool fixed = f.layout == ArrowLayout::fixed_list;
  const i64 begin = fixed ? i * f.width : offset_at(a.offsets, f.width, i);
  const i64 end = fixed ? begin + f.width : offset_at(a.offsets, f.width, i + 1);
  Json items = Json::array();
  for (i64 k = begin; k < end; ++k) items.push_back(value(f.children[0], a.children[0], k));
  if (!f.is_map) return items;
  return map_cell(std::move(items), f.children[0].children[0].name, f.children[0].children[1].name);
}

ArrowValues::Json ArrowValues::text(const ArrowField& f, std::string_view bytes) {
  spend(bytes.size());
  return text_cell(bytes, f.is_text, f.name);
}

}  // namespace redco

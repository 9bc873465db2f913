#include "data/parquet/encodings.h"

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "data/text/cell_values.h"

namespace redco {

namespace {

using ValueJson = CellJson;

constexpr std::size_t kMaxTexts = std::size_t{512} << 20;  // bytes of the texts of a page

[[noreturn]] void broken_values() { throw ContentsError("a page is damaged: it has too few bytes"); }

class Bytes {
 public:
  explicit Bytes(std::string_view b) : bytes_(b) {}
  std::string_view take(std::size_t n) {
    if (n > bytes_.size() - at_) broken_values();
    at_ += n;
    return bytes_.substr(at_ - n, n);
  }
  template <class T>
  T number() {
    T v;
    std::memcpy(&v, take(sizeof v).data(), sizeof v);
    return v;
  }
  u64 varint() {
    u64 v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto b = number<std::uint8_t>();
      v |= u64{b & 127u} << shift;
      if (b < 128) return v;
    }
    broken_values();
  }
  i64 zigzag() {
    const u64 v = varint();
    return static_cast<i64>(v >> 1) ^ -static_cast<i64>(v & 1);
  }
  std::size_t at() const { return at_; }
  std::string_view rest() const { return bytes_.substr(at_); }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

// Bits from the lowest of the first byte on.
u64 bits_at(std::string_view bytes, std::size_t first, int width) {
  u64 v = 0;
  for (int done = 0; done < width;) {
    const std::size_t bit = first + static_cast<std::size_t>(done);
    const int shift = static_cast<int>(bit % 8), some = std::min(8 - shift, width - done);
    v |= (u64{static_cast<std::uint8_t>(bytes[bit / 8])} >> shift & ((u64{1} << some) - 1)) << done;
    done += some;
  }
  return v;
}

ValueJson text_value(const ParquetNode& leaf, std::string_view bytes) {
  return text_cell(bytes, leaf.meaning == ParquetMeaning::text, leaf.name);
}

ValueJson half_value(std::string_view bytes) {
  return half_cell(static_cast<std::uint16_t>(static_cast<std::uint8_t>(bytes[0]) |
                                              static_cast<std::uint8_t>(bytes[1]) << 8));
}

template <class T>
ValueJson integer_value(const ParquetNode& leaf, T v) {
  if (leaf.meaning == ParquetMeaning::decimal) return static_cast<double>(v) * std::pow(10.0, -leaf.scale);
  if (leaf.meaning == ParquetMeaning::unsigned_integer) return static_cast<std::make_unsigned_t<T>>(v);
  return v;
}

ValueJson fixed_value(const ParquetNode& leaf, std::string_view bytes) {
  if (leaf.meaning == ParquetMeaning::decimal) return decimal_of_bytes(bytes, leaf.scale);
  if (leaf.meaning == ParquetMeaning::float16 && bytes.size() == 2) return half_value(bytes);
  return text_value(leaf, bytes);
}

ValueJson bytes_value(const ParquetNode& leaf, std::string_view bytes) {
  return leaf.meaning == ParquetMeaning::decimal ? ValueJson(decimal_of_bytes(bytes, leaf.scale))
                                                 : text_value(leaf, bytes);
}

// Bytes of a value of a fixed size; 0: it has none.
std::size_t width_of(const ParquetNode& leaf) {
  switch (leaf.type) {
    case ParquetType::int32:
    case ParquetType::float32:
      return 4;
    case ParquetType::int64:
    case ParquetType::float64:
      return 8;
    case ParquetType::int96:
      return 12;
    case ParquetType::fixed:
      return static_cast<std::size_t>(leaf.type_length);
    default:
      return 0;
  }
}

ValueJson plain_value(const ParquetNode& leaf, Bytes& in) {
  switch (leaf.type) {
    case ParquetType::int32:
      return integer_value(leaf, in.number<i32>());
    case ParquetType::int64:
      return integer_value(leaf, in.number<i64>());
    case ParquetType::float32:
      return real_cell(in.number<float>());
    case ParquetType::float64:
      return real_cell(in.number<double>());
    case ParquetType::int96:
      return in.take(12).empty() ? ValueJson() : ValueJson();  // old time stamps
    case ParquetType::fixed:
      return fixed_value(leaf, in.take(width_of(leaf)));
    default:
      return bytes_value(leaf, in.take(in.number<u32>()));
  }
}

std::vector<ValueJson> plain_values(const ParquetNode& leaf, std::string_view bytes, std::size_t n) {
  std::vector<ValueJson> out;
  if (leaf.type == ParquetType::boolean) {
    if (n > bytes.size() * 8) broken_values();
    for (std::size_t i = 0; i < n; ++i) out.emplace_back(bits_at(bytes, i, 1) != 0);
    return out;
  }
  Bytes in(bytes);
  for (std::size_t i = 0; i < n; ++i) out.push_back(plain_value(leaf, in));
  return out;
}

// The bytes of value i lie n apart.
std::vector<ValueJson> split_values(const ParquetNode& leaf, std::string_view bytes, std::size_t n) {
  const std::size_t width = width_of(leaf);
  if (width == 0 || n > bytes.size() / width) broken_values();
  std::string plain(n * width, '\0');
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < width; ++k) plain[i * width + k] = bytes[k * n + i];
  return plain_values(leaf, plain, n);
}

std::vector<ValueJson> delta_texts(const ParquetNode& leaf, std::string_view bytes, std::size_t n,
                                   bool with_prefixes) {
  if (leaf.type != ParquetType::bytes && leaf.type != ParquetType::fixed) broken_values();
  std::size_t used = 0;
  std::vector<i64> prefixes(n, 0);
  if (with_prefixes) {
    prefixes = decode_deltas(bytes, n, &used);
    bytes.remove_prefix(used);
  }
  const std::vector<i64> lengths = decode_deltas(bytes, n, &used);
  if (lengths.size() != n || prefixes.size() != n) broken_values();
  Bytes in(bytes.substr(used));
  std::vector<ValueJson> out;
  std::string text;
  std::size_t total = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (lengths[i] < 0 || prefixes[i] < 0 || static_cast<std::size_t>(prefixes[i]) > text.size())
      broken_values();
    text.resize(static_cast<std::size_t>(prefixes[i]));
    text += in.take(static_cast<std::size_t>(lengths[i]));
    total += text.size();
    if (total > kMaxTexts) throw ContentsError("a page has more than {} bytes of texts", kMaxTexts);
    out.push_back(leaf.type == ParquetType::fixed ? fixed_value(leaf, text) : bytes_value(leaf, text));
  }
  return out;
}

}  // namespace

std::vector<u32> decode_runs(std::string_view bytes, int width, std::size_t n, std::size_t* used) {
  if (width < 0 || width > 32) broken_values();
  std::vector<u32> out;
  Bytes in(bytes);
  while (out.size() < n) {
    if (width == 0) {
      out.resize(n, 0);
      break;
    }
    const u64 head = in.varint();
    const u64 count = head >> 1;
    if (head & 1) {
      if (count > in.rest().size()) broken_values();
      const std::string_view packed = in.take(count * static_cast<u64>(width));
      for (u64 i = 0; i < count * 8 && out.size() < n; ++i)
        out.push_back(static_cast<u32>(bits_at(packed, i * static_cast<u64>(width), width)));
    } else {
      u32 v = 0;
      const std::string_view value = in.take(static_cast<std::size_t>(width + 7) / 8);
      std::memcpy(&v, value.data(), value.size());
      if (count == 0) broken_values();
      out.insert(out.end(), std::min<u64>(count, n - out.size()), v);
    }
  }
  if (used) *used = in.at();
  return out;
}

std::vector<i64> decode_deltas(std::string_view bytes, std::size_t n, std::size_t* used) {
  Bytes in(bytes);
  const u64 block = in.varint(), minis = in.varint(), total = in.varint();
  u64 value = static_cast<u64>(in.zigzag());
  if (minis == 0 || block == 0 || block > 1 << 20 || block % minis != 0 || block / minis % 8 != 0 ||
      total > n)
    broken_values();
  const u64 per_mini = block / minis;
  std::vector<i64> out;
  if (total > 0) out.push_back(static_cast<i64>(value));
  while (out.size() < total) {
    const u64 least = static_cast<u64>(in.zigzag());
    const std::string_view widths = in.take(minis);
    for (u64 m = 0; m < minis && out.size() < total; ++m) {
      const int width = static_cast<std::uint8_t>(widths[m]);
      if (width > 64) broken_values();
      const std::string_view packed = in.take(per_mini / 8 * static_cast<u64>(width));
      for (u64 i = 0; i < per_mini && out.size() < total; ++i) {
        value += least + (width == 0 ? 0 : bits_at(packed, i * static_cast<u64>(width), width));
        out.push_back(static_cast<i64>(value));
      }
    }
  }
  if (used) *used = in.at();
  return out;
}

std::vector<ValueJson> decode_values(const ParquetNode& leaf, i64 encoding, std::string_view bytes,
                                     std::size_t n) {
  switch (encoding) {
    case 0:
      return plain_values(leaf, bytes, n);
    case 3: {  // booleans as runs, with their size in front
      if (leaf.type != ParquetType::boolean) broken_values();
      Bytes in(bytes);
      std::vector<ValueJson> out;
      for (const u32 v : decode_runs(in.take(in.number<u32>()), 1, n)) out.emplace_back(v != 0);
      return out;
    }
    case 5: {
      if (leaf.type != ParquetType::int32 && leaf.type != ParquetType::int64) broken_values();
      std::vector<ValueJson> out;
      for (const i64 v : decode_deltas(bytes, n))
        out.push_back(leaf.type == ParquetType::int32 ? integer_value(leaf, static_cast<i32>(v))
                                                      : integer_value(leaf, v));
      if (out.size() != n) broken_values();
      return out;
    }
    case 6:
      return delta_texts(leaf, bytes, n, false);
    case 7:
      return delta_texts(leaf, bytes, n, true);
    case 9:
      return split_values(leaf, bytes, n);
    default:
      throw UsageError(
          "column {} has the encoding {}, which redco does not read. Write the file again with "
          "pandas or pyarrow",
          leaf.name, encoding);
  }
}

}  // namespace redco

#include "gguf/header.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/words.h"

namespace redco::gguf {

namespace {

constexpr i64 kMaxName = 64 << 10, kMaxText = 16 << 20, kMaxDims = 4;
constexpr i64 kMaxItems = i64{1} << 26;  // of an array, and of keys and tensors together

// ggml's numbers of the types of values.
enum class ValueType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };

// Reads forward through a buffer.
class Cursor {
 public:
  explicit Cursor(const ReadFile& file) : file_(file) {}

  i64 at() const { return begin_ + next_; }
  i64 left() const { return file_.size() - at(); }
  const std::string& path() const { return file_.path(); }

  template <class T>
  T number() {
    T out;
    take(reinterpret_cast<char*>(&out), sizeof out);
    return out;
  }
  // A length whose items need at least `each` bytes of the file.
  i64 count(const char* what, i64 each, i64 most) {
    const u64 n = number<u64>();
    if (n > static_cast<u64>(most) || static_cast<i64>(n) > left() / each)
      throw ContentsError("{}: byte {} gives {} {}, but the file has {} bytes left", path(), at() - 8, n,
                          what, left());
    return static_cast<i64>(n);
  }
  std::string text(i64 most) {
    std::string out(static_cast<std::size_t>(count("bytes of text", 1, most)), '\0');
    take(out.data(), static_cast<i64>(out.size()));
    return out;
  }

 private:
  void take(char* to, i64 n) {
    if (n > left())
      throw ContentsError("{}: the file ends in its header, at byte {}. Download it again", path(), at());
    while (n > 0) {
      if (next_ == static_cast<i64>(buffer_.size())) {
        begin_ += next_;
        next_ = 0;
        buffer_.resize(static_cast<std::size_t>(std::min<i64>(1 << 16, file_.size() - begin_)));
        file_.pread_exact(begin_, buffer_.data(), static_cast<i64>(buffer_.size()));
      }
      const i64 some = std::min(n, static_cast<i64>(buffer_.size()) - next_);
      std::memcpy(to, buffer_.data() + next_, static_cast<std::size_t>(some));
      next_ += some;
      to += some;
      n -= some;
    }
  }

  const ReadFile& file_;
  std::vector<char> buffer_;
  i64 begin_ = 0, next_ = 0;
};

template <class T>
Value whole_number(T x) {
  if constexpr (std::is_same_v<T, u64>) {
    if (x > static_cast<u64>(std::numeric_limits<i64>::max())) return {x};
  }
  return {static_cast<i64>(x)};
}

Value read_value(Cursor& c, std::uint32_t type, const std::string& key);

template <class T, class Read>
Value list(Cursor& c, i64 each, Read read) {
  std::vector<T> out;
  const i64 n = c.count("items", each, kMaxItems);
  out.reserve(static_cast<std::size_t>(n));
  for (i64 i = 0; i < n; ++i) out.push_back(read());
  return {std::move(out)};
}

template <class T>
Value integers_of(Cursor& c) {
  return list<i64>(c, sizeof(T), [&] { return static_cast<i64>(c.number<T>()); });
}

Value read_array(Cursor& c, const std::string& key) {
  const auto type = c.number<std::uint32_t>();
  switch (static_cast<ValueType>(type)) {
    case ValueType::u8:
      return integers_of<std::uint8_t>(c);
    case ValueType::i8:
      return integers_of<std::int8_t>(c);
    case ValueType::u16:
      return integers_of<std::uint16_t>(c);
    case ValueType::i16:
      return integers_of<std::int16_t>(c);
    case ValueType::u32:
      return integers_of<std::uint32_t>(c);
    case ValueType::i32:
      return integers_of<std::int32_t>(c);
    case ValueType::u64:
    case ValueType::i64:
      return integers_of<i64>(c);
    case ValueType::f32:
      return list<double>(c, 4, [&] { return static_cast<double>(c.number<float>()); });
    case ValueType::f64:
      return list<double>(c, 8, [&] { return c.number<double>(); });
    case ValueType::boolean:
      return list<bool>(c, 1, [&] { return c.number<std::uint8_t>() != 0; });
    case ValueType::text:
      return list<std::string>(c, 8, [&] { return c.text(kMaxText); });
    case ValueType::array:
      break;
  }
  throw ContentsError(
      "{}: {} is an array of {}, expected numbers, booleans or texts", c.path(), key,
      static_cast<ValueType>(type) == ValueType::array ? "arrays" : fmt::format("values of type {}", type));
}

Value read_value(Cursor& c, std::uint32_t type, const std::string& key) {
  switch (static_cast<ValueType>(type)) {
    case ValueType::u8:
      return whole_number(c.number<std::uint8_t>());
    case ValueType::i8:
      return whole_number(c.number<std::int8_t>());
    case ValueType::u16:
      return whole_number(c.number<std::uint16_t>());
    case ValueType::i16:
      return whole_number(c.number<std::int16_t>());
    case ValueType::u32:
      return whole_number(c.number<std::uint32_t>());
    case ValueType::i32:
      return whole_number(c.number<std::int32_t>());
    case ValueType::u64:
      return whole_number(c.number<u64>());
    case ValueType::i64:
      return whole_number(c.number<i64>());
    case ValueType::f32:
      return {static_cast<double>(c.number<float>())};
    case ValueType::f64:
      return {c.number<double>()};
    case ValueType::boolean:
      return {c.number<std::uint8_t>() != 0};
    case ValueType::text:
      return {c.text(kMaxText)};
    case ValueType::array:
      return read_array(c, key);
  }
  throw ContentsError("{}: {} has the unknown type {}", c.path(), key, type);
}

std::uint32_t read_version(Cursor& c) {
  char magic[4];
  for (char& m : magic) m = static_cast<char>(c.number<std::uint8_t>());
  if (std::memcmp(magic, "GGUF", 4) != 0)
    throw ContentsError("{} is no GGUF file: it does not begin with GGUF", c.path());
  const auto version = c.number<std::uint32_t>();
  if (version == 2 || version == 3) return version;
  const bool swapped = (version & 0xFFFF) == 0;
  throw ContentsError("{}: {}; redco reads the versions 2 and 3, little-endian", c.path(),
                      swapped ? "the file is big-endian" : fmt::format("GGUF version {}", version));
}

Tensor read_tensor(Cursor& c) {
  Tensor t;
  t.name = c.text(kMaxName);
  const auto dims = c.number<std::uint32_t>();
  if (dims > kMaxDims) throw ContentsError("{}: {} has {} dims, expected at most 4", c.path(), t.name, dims);
  i64 elements = 1;
  for (std::uint32_t d = 0; d < dims; ++d) {
    const u64 n = c.number<u64>();
    if (n == 0 || n > static_cast<u64>(std::numeric_limits<i64>::max() / 8) / static_cast<u64>(elements))
      throw ContentsError("{}: {} has a dim of {} elements", c.path(), t.name, n);
    elements *= static_cast<i64>(n);
    t.shape.insert(t.shape.begin(), static_cast<i64>(n));
  }
  const auto number = c.number<std::uint32_t>();
  const auto type = block_type(number);
  if (!type)
    throw ContentsError(
        "{}: the tensor {} has the type {}; redco reads F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, "
        "Q5_K and Q6_K. Convert the model to one of them",
        c.path(), t.name, name_of_type(number));
  t.type = *type;
  const BlockSize size = size_of(t.type);
  const i64 row = t.shape.empty() ? 1 : t.shape.back();
  if (row % size.elements != 0)
    throw ContentsError("{}: {} has rows of {} elements, not a multiple of the block size {} ({})", c.path(),
                        t.name, row, size.elements, name_of(t.type));
  t.bytes = elements / size.elements * size.bytes;
  const u64 offset = c.number<u64>();
  if (offset > static_cast<u64>(std::numeric_limits<i64>::max() / 2))
    throw ContentsError("{}: {} begins at {}, outside of the file", c.path(), t.name, offset);
  t.offset = static_cast<i64>(offset);
  return t;
}

template <class T>
const T* held(const Header& h, const std::string& key, const char* expected) {
  const auto it = h.values.find(key);
  if (it == h.values.end()) return nullptr;
  if (const T* v = std::get_if<T>(&it->second.held)) return v;
  throw ContentsError("{}: {} is not {}", h.path, key, expected);
}

}  // namespace

std::optional<std::string> Header::text(const std::string& key) const {
  const auto* v = held<std::string>(*this, key, "a text");
  return v ? std::optional(*v) : std::nullopt;
}
std::optional<i64> Header::integer(const std::string& key) const {
  const auto* v = held<i64>(*this, key, "an integer");
  return v ? std::optional(*v) : std::nullopt;
}
std::optional<double> Header::number(const std::string& key) const {
  const auto it = values.find(key);
  if (it == values.end()) return std::nullopt;
  if (const auto* i = std::get_if<i64>(&it->second.held)) return static_cast<double>(*i);
  return *held<double>(*this, key, "a number");
}
std::optional<bool> Header::boolean(const std::string& key) const {
  const auto* v = held<bool>(*this, key, "true or false");
  return v ? std::optional(*v) : std::nullopt;
}
const std::vector<std::string>* Header::texts(const std::string& key) const {
  return held<std::vector<std::string>>(*this, key, "a list of texts");
}
std::optional<std::vector<i64>> Header::integers(const std::string& key) const {
  const auto* v = held<std::vector<i64>>(*this, key, "a list of integers");
  return v ? std::optional(*v) : std::nullopt;
}
std::optional<std::vector<double>> Header::numbers(const std::string& key) const {
  const auto* v = held<std::vector<double>>(*this, key, "a list of numbers");
  return v ? std::optional(*v) : std::nullopt;
}
i64 Header::at_integer(const std::string& key) const {
  if (const auto v = integer(key)) return *v;
  throw ContentsError("{}: the key {} is missing", path, key);
}
std::string Header::at_text(const std::string& key) const {
  if (const auto v = text(key)) return *v;
  throw ContentsError("{}: the key {} is missing", path, key);
}

const Tensor* Header::find(const std::string& name) const {
  const auto it = std::ranges::find(tensors, name, &Tensor::name);
  return it == tensors.end() ? nullptr : &*it;
}

Header read_header(const ReadFile& file) {
  Cursor c(file);
  Header h;
  h.path = file.path();
  read_version(c);
  const i64 n_tensors = c.count("tensors", 24, kMaxItems), n_keys = c.count("keys", 13, kMaxItems);
  for (i64 i = 0; i < n_keys; ++i) {
    const std::string key = c.text(kMaxName);
    const auto type = c.number<std::uint32_t>();
    if (!h.values.emplace(key, read_value(c, type, excerpt(key))).second)
      throw ContentsError("{}: the key {} is there twice", h.path, excerpt(key));
  }
  std::set<std::string> names;
  for (i64 i = 0; i < n_tensors; ++i) {
    h.tensors.push_back(read_tensor(c));
    if (!names.insert(h.tensors.back().name).second)
      throw ContentsError("{}: the tensor {} is there twice", h.path, excerpt(h.tensors.back().name));
  }
  const i64 alignment = h.integer("general.alignment").value_or(32);
  if (alignment < 1 || alignment > (1 << 20) || (alignment & (alignment - 1)) != 0)
    throw ContentsError("{}: general.alignment is {}, expected a power of 2", h.path, alignment);
  const i64 data = (c.at() + alignment - 1) / alignment * alignment;
  for (Tensor& t : h.tensors) {
    t.offset += data;
    if (t.offset > file.size() || t.bytes > file.size() - t.offset)
      throw ContentsError("{}: the tensor {} ends at byte {}, but the file has {}. Download it again", h.path,
                          t.name, t.offset + t.bytes, file.size());
  }
  return h;
}

namespace {

std::vector<std::string> parts_of(const std::string& path) {
  // NAME-00001-of-00003.gguf
  const std::string name = file_name(path);
  const std::size_t of = name.rfind("-of-");
  const auto digits = [&](std::size_t at) {
    return at + 5 <= name.size() && std::all_of(name.begin() + static_cast<std::ptrdiff_t>(at),
                                                name.begin() + static_cast<std::ptrdiff_t>(at + 5),
                                                [](char ch) { return ch >= '0' && ch <= '9'; });
  };
  if (of == std::string::npos || of < 6 || name[of - 6] != '-' || !digits(of - 5) || !digits(of + 4) ||
      name.substr(of + 9) != ".gguf")
    return {path};
  const int n = std::stoi(name.substr(of + 4, 5));
  std::vector<std::string> out;
  for (int i = 1; i <= n; ++i) {
    const std::string part =
        join_path(parent_path(path), fmt::format("{}-{:05}-of-{:05}.gguf", name.substr(0, of - 6), i, n));
    if (!exists(part))
      throw ContentsError("{}: part {} of {} is missing. Put all parts into one folder", part, i, n);
    out.push_back(part);
  }
  if (out.empty()) throw ContentsError("{}: the name gives 0 parts", path);
  return out;
}

}  // namespace

Model open_model(const std::string& path) {
  Model m;
  std::set<std::string> names;
  for (const std::string& part : parts_of(path)) {
    const int index = static_cast<int>(m.parts.size());
    m.parts.push_back(ReadFile::open(part));
    Header h = read_header(m.parts.back());
    for (Tensor& t : h.tensors) {
      t.part = index;
      if (!names.insert(t.name).second)
        throw ContentsError("{}: an earlier part has the tensor {} too", part, excerpt(t.name));
    }
    if (index == 0)
      m.header = std::move(h);
    else
      m.header.tensors.insert(m.header.tensors.end(), std::make_move_iterator(h.tensors.begin()),
                              std::make_move_iterator(h.tensors.end()));
  }
  return m;
}

}  // namespace redco::gguf

#include "data/images/idx.h"

#include <algorithm>

#include "base/error.h"
#include "base/input_file.h"

namespace redco {

namespace {

constexpr u64 kMaxBytes = u64{64} << 30;
constexpr u64 kReadAtOnce = u64{16} << 20;

struct Type {
  int code;
  const char* name;
  u64 size;
};
constexpr Type kTypes[] = {{0x08, "unsigned bytes", 1}, {0x09, "signed bytes", 1}, {0x0b, "int16", 2},
                           {0x0c, "int32", 4},          {0x0d, "float32", 4},      {0x0e, "float64", 8}};

struct Idx {
  Type type{};
  Shape shape;
  std::vector<std::uint8_t> bytes;
};

// The header: two zeros, the type, the number of dimensions, and each dimension as 4 bytes, most significant
// first. Then the numbers, in the same byte order.
Idx read_idx(const std::string& path) {
  InputFile file = InputFile::open(path);
  const auto read = [&](void* to, u64 n) {
    auto* at = static_cast<char*>(to);
    for (u64 left = n; left > 0;) {
      const size_t got = file.read(at, left);
      if (got == 0) return n - left;
      at += got;
      left -= got;
    }
    return n;
  };
  std::uint8_t head[4] = {};
  if (read(head, 4) != 4) throw ContentsError("[data] {}: too short to be an IDX file", path);
  const auto* type =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const Type& t) { return t.code == head[2]; });
  if (head[0] != 0 || head[1] != 0 || type == std::end(kTypes) || head[3] == 0 || head[3] > 8)
    throw ContentsError(
        "[data] {}: not an IDX file: it begins with {:02x} {:02x} {:02x} {:02x}; expected 00 00, a type (08, "
        "09, 0b to 0e) and the number of dimensions",
        path, head[0], head[1], head[2], head[3]);
  Idx idx{*type, {}, {}};
  u64 n = type->size;
  for (int d = 0; d < head[3]; ++d) {
    std::uint8_t b[4] = {};
    if (read(b, 4) != 4) throw ContentsError("[data] {}: the file ends inside its header", path);
    const u64 size = u64{b[0]} << 24 | u64{b[1]} << 16 | u64{b[2]} << 8 | b[3];
    idx.shape.push_back(static_cast<i64>(size));
    if (size > 0 && n > kMaxBytes / size)
      throw ContentsError("[data] {}: more than {} bytes in the {} dimensions that its header names", path,
                          kMaxBytes, head[3]);
    n *= size;
  }
  // Grows with the data: the sizes in the header may be wrong.
  while (idx.bytes.size() < n) {
    const u64 before = idx.bytes.size(), piece = std::min(kReadAtOnce, n - before);
    idx.bytes.resize(before + piece);
    if (const u64 got = read(idx.bytes.data() + before, piece); got < piece)
      throw ContentsError("[data] {}: the file ends after {} of the {} bytes that its header {} says", path,
                          before + got, n, to_string(idx.shape));
  }
  if (char more; read(&more, 1) != 0)
    throw ContentsError("[data] {}: more than the {} bytes that its header {} says", path, n,
                        to_string(idx.shape));
  return idx;
}

}  // namespace

Image IdxImages::at(i64 i) const {
  const i64 n = height * width * channels;
  const auto begin = pixels.begin() + i * n;
  return {height, width, channels, {begin, begin + n}};
}

IdxImages read_idx_images(const std::string& path) {
  Idx idx = read_idx(path);
  const Shape& s = idx.shape;
  if (idx.type.code != 0x08 || s.size() < 3 || s.size() > 4 || (s.size() == 4 && s[3] != 1 && s[3] != 3))
    throw ContentsError(
        "[data] {}: {} in the shape {}; images are unsigned bytes (images, height, width) or (..., 1 or 3)",
        path, idx.type.name, to_string(s));
  if (s[1] < 1 || s[2] < 1 || s[1] > kMaxPixels / s[2])
    throw ContentsError("[data] {}: images of {} x {} pixels; expected at least 1 and at most {} in all",
                        path, s[1], s[2], kMaxPixels);
  return {s[0], s[1], s[2], s.size() == 4 ? s[3] : 1, std::move(idx.bytes)};
}

std::vector<i32> read_idx_labels(const std::string& path) {
  const Idx idx = read_idx(path);
  if (idx.shape.size() != 1 || idx.type.code > 0x0c)
    throw ContentsError("[data] {}: {} in the shape {}; labels are whole numbers in one dimension", path,
                        idx.type.name, to_string(idx.shape));
  std::vector<i32> out(static_cast<size_t>(idx.shape[0]));
  const u64 size = idx.type.size;
  for (size_t i = 0; i < out.size(); ++i) {
    u32 bits = 0;
    for (u64 b = 0; b < size; ++b) bits = bits << 8 | idx.bytes[i * size + b];
    const bool negative = idx.type.code != 0x08 && (bits >> (8 * size - 1)) != 0;
    if (negative && size < 4) bits |= ~u32{0} << (8 * size);
    out[i] = static_cast<i32>(bits);
  }
  return out;
}

}  // namespace redco

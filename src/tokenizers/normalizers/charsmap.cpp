#include "tokenizers/normalizers/charsmap.h"

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"

namespace redco {
namespace {

constexpr std::size_t kMaxMapped = 256;  // bytes of a replacement; Unicode's longest has 33

// A unit of the double array in Darts-clone's layout. A leaf has bit 31 and a value. Another node has its
// label in the low byte, the offset of its children from bit 10 on (times 256 if bit 9 is set), and bit 8 if
// a child is a leaf.
u32 offset_of(u32 unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); }
u32 label_of(u32 unit) { return unit & ((1u << 31) | 0xFF); }
bool has_leaf(u32 unit) { return (unit >> 8) & 1; }
u32 value_of(u32 unit) { return unit & ((1u << 31) - 1); }

}  // namespace

Charsmap::Charsmap(std::string_view blob, const std::string& where) {
  u32 size = 0;
  if (blob.size() < 4)
    throw ContentsError("{}: a character map of {} bytes is too short", where, blob.size());
  for (int k = 3; k >= 0; --k)
    size = size << 8 | static_cast<unsigned char>(blob[static_cast<std::size_t>(k)]);
  if (size % 4 != 0 || size > blob.size() - 4)
    throw ContentsError("{}: the character map says its trie has {} bytes, but {} follow", where, size,
                        blob.size() - 4);
  units_.resize(size / 4);
  for (std::size_t k = 0; k < units_.size(); ++k)
    for (std::size_t b = 4; b-- > 0;)
      units_[k] = units_[k] << 8 | static_cast<unsigned char>(blob[4 + 4 * k + b]);
  texts_ = blob.substr(4 + size);
  if (const std::size_t bad = find_invalid_utf8(texts_); bad != std::string::npos)
    throw ContentsError("{}: byte {} of the character map's texts is not UTF-8", where, bad);
  for (std::size_t from = 0; from < texts_.size();) {
    const std::size_t end = std::min(texts_.find('\0', from), texts_.size());
    if (end - from > kMaxMapped)
      throw ContentsError("{}: a text of {} bytes in the character map; at most {} are supported", where,
                          end - from, kMaxMapped);
    from = end + 1;
  }
}

// Calls f(length, value) for each matching rule, shortest first, until f returns false.
template <class F>
void Charsmap::prefixes(std::string_view text, F&& f) const {
  if (units_.empty()) return;
  std::size_t at = offset_of(units_[0]);
  for (std::size_t k = 0; k < text.size(); ++k) {
    const auto b = static_cast<unsigned char>(text[k]);
    if (b == 0) return;
    at ^= b;
    if (at >= units_.size() || label_of(units_[at]) != b) return;
    const u32 unit = units_[at];
    at ^= offset_of(unit);
    if (has_leaf(unit) && at < units_.size() && !f(k + 1, value_of(units_[at]))) return;
  }
}

// The text from `value` to the next NUL; nullopt if `value` is outside of the texts or inside a character.
std::optional<std::string_view> Charsmap::text_at(u32 value) const {
  if (value >= texts_.size() || (static_cast<unsigned char>(texts_[value]) & 0xC0) == 0x80)
    return std::nullopt;
  return std::string_view(texts_.c_str() + value);
}

std::optional<std::string_view> Charsmap::shortest(std::string_view text, std::size_t& length) const {
  std::optional<std::string_view> found;
  prefixes(text, [&](std::size_t n, u32 value) {
    found = text_at(value);
    length = n;
    return false;
  });
  return found;
}

std::optional<std::string_view> Charsmap::longest(std::string_view text, std::size_t& length) const {
  std::optional<std::string_view> found;
  prefixes(text, [&](std::size_t n, u32 value) {
    if (const auto t = text_at(value)) {
      found = t;
      length = n;
    }
    return true;
  });
  return found;
}

}  // namespace redco

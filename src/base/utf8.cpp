#include "base/utf8.h"

#include <cstdint>
#include <cstring>

namespace redco {
namespace {

// One character. size: its bytes, or the bytes of the maximal ill-formed part. cut: the text ends inside a
// character that is well-formed so far.
struct Character {
  bool valid;
  std::size_t size;
  bool cut;
};

// Table 3-7 of the Unicode standard: the second byte's range depends on the first.
Character character_at(std::string_view s, std::size_t i) {
  auto at = [&](std::size_t k) { return static_cast<unsigned char>(s[k]); };
  const unsigned char b = at(i);
  if (b < 0x80) return {true, 1, false};
  std::size_t n;
  unsigned char low = 0x80, high = 0xBF;
  if (b >= 0xC2 && b <= 0xDF) {
    n = 2;
  } else if (b >= 0xE0 && b <= 0xEF) {
    n = 3;
    if (b == 0xE0) low = 0xA0;
    if (b == 0xED) high = 0x9F;
  } else if (b >= 0xF0 && b <= 0xF4) {
    n = 4;
    if (b == 0xF0) low = 0x90;
    if (b == 0xF4) high = 0x8F;
  } else {
    return {false, 1, false};
  }
  for (std::size_t k = 1; k < n; ++k) {
    if (i + k >= s.size()) return {false, k, true};
    if (at(i + k) < low || at(i + k) > high) return {false, k, false};
    low = 0x80;
    high = 0xBF;
  }
  return {true, n, false};
}

}  // namespace

std::size_t find_invalid_utf8(std::string_view s) {
  std::size_t i = 0;
  while (i < s.size()) {
    while (i + 8 <= s.size()) {
      std::uint64_t word;
      std::memcpy(&word, s.data() + i, 8);
      if (word & 0x8080808080808080ull) break;
      i += 8;
    }
    if (i == s.size()) break;
    const Character c = character_at(s, i);
    if (!c.valid) return i;
    i += c.size;
  }
  return std::string_view::npos;
}

std::size_t incomplete_utf8_tail(std::string_view s) {
  for (std::size_t back = 1; back <= 3 && back <= s.size(); ++back) {
    const auto b = static_cast<unsigned char>(s[s.size() - back]);
    if ((b & 0xC0) == 0x80) continue;
    const Character c = character_at(s, s.size() - back);
    return c.cut && c.size == back ? back : 0;
  }
  return 0;
}

std::string utf8_lossy(std::string_view s) {
  if (find_invalid_utf8(s) == std::string_view::npos) return std::string(s);
  std::string out;
  for (std::size_t i = 0; i < s.size();) {
    const Character c = character_at(s, i);
    if (c.valid)
      out.append(s, i, c.size);
    else
      out += "\xEF\xBF\xBD";
    i += c.size;
  }
  return out;
}

void append_utf8(char32_t c, std::string& out) {
  auto put = [&](char32_t b) { out += static_cast<char>(b); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | (c >> 6));
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | (c >> 12));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | (c >> 18));
    put(0x80 | ((c >> 12) & 0x3F));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

}  // namespace redco

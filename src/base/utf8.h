// UTF-8: strict validation, decoding of valid text, repair of invalid text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace redco {

// The offset of the first byte that is not part of well-formed UTF-8, or npos. Overlong forms, surrogates and
// code points above U+10FFFF are not well-formed.
std::size_t find_invalid_utf8(std::string_view text);
inline bool is_utf8(std::string_view text) { return find_invalid_utf8(text) == std::string_view::npos; }

// The number of bytes (0 to 3) of an incomplete character at the end of `text`. Streams hold them back.
std::size_t incomplete_utf8_tail(std::string_view text);

// `bytes` with each maximal ill-formed part replaced by U+FFFD. Rust's from_utf8_lossy and Python's
// errors="replace" do the same.
std::string utf8_lossy(std::string_view bytes);

void append_utf8(char32_t c, std::string& out);

// The code point at p, which moves to the next one. REQUIRES valid UTF-8.
//
// Always inlined, since GCC's limits on inlining depend on which files it compiles together. With a call, the
// splitter of GPT-2's pattern takes 1.6 times the instructions.
[[gnu::always_inline]] inline char32_t next_code_point(const char*& p) {
  const auto b = static_cast<unsigned char>(*p++);
  if (b < 0x80) return b;
  auto tail = [&] { return static_cast<char32_t>(static_cast<unsigned char>(*p++) & 0x3F); };
  if (b < 0xE0) return (static_cast<char32_t>(b & 0x1F) << 6) | tail();
  if (b < 0xF0) {
    const char32_t c = (static_cast<char32_t>(b & 0x0F) << 12) | (tail() << 6);
    return c | tail();
  }
  char32_t c = static_cast<char32_t>(b & 0x07) << 18;
  c |= tail() << 12;
  c |= tail() << 6;
  return c | tail();
}

// The start of the character before `p`; REQUIRES p > begin and valid UTF-8.
inline const char* previous_character(const char* begin, const char* p) {
  do --p;
  while (p > begin && (static_cast<unsigned char>(*p) & 0xC0) == 0x80);
  return p;
}

}  // namespace redco

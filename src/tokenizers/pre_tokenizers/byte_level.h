// GPT-2's byte alphabet: one printable character for each of the 256 bytes.
#pragma once

#include <string>
#include <string_view>

namespace redco {

// The character of byte b: U+0021 for 0x21, U+0120 for the space.
char32_t byte_level_char(unsigned char b);

// The byte of character `c`, or -1.
int byte_of_char(char32_t c);

// Appends the character of each byte, in UTF-8, to `out`.
void append_byte_level(std::string_view bytes, std::string& out);

// Appends the bytes of the characters of `text` (valid UTF-8) to `out`. If a character is not in the
// alphabet, returns false and appends nothing.
bool append_bytes_of(std::string_view text, std::string& out);

}  // namespace redco

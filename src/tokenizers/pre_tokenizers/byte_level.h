// GPT-2's byte alphabet: one printable character for each of the 256 bytes, so that any text is a string of
// them.
#pragma once

#include <string>
#include <string_view>

namespace redco {

// The character that stands for byte b (U+0021 for 0x21, U+0120 for the space, ...).
char32_t byte_level_char(unsigned char b);

// The byte that `c` stands for, or -1.
int byte_of_char(char32_t c);

// Every byte of `bytes` as its character, in UTF-8, appended to `out`.
void append_byte_level(std::string_view bytes, std::string& out);

// The bytes that `text` (valid UTF-8) stands for, appended to `out`; false, and nothing appended, when it has
// a character outside the alphabet.
bool append_bytes_of(std::string_view text, std::string& out);

}  // namespace redco

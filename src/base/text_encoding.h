// Encodings of text files. redco reads UTF-8; other encodings are errors that name the command to convert.
#pragma once

#include <string>
#include <string_view>

namespace redco {

inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // of UTF-8

// The encoding of a text that begins with these bytes, by iconv's name: "UTF-16" or "UTF-32" where a byte
// order mark shows it, "UTF-16LE" or "UTF-16BE" where every second byte of at least 8 is zero; "" otherwise.
std::string_view wide_encoding(std::string_view start);

// "a.txt: the file is UTF-16, expected UTF-8. Convert it with: iconv -f UTF-16 -t UTF-8"
std::string wide_encoding_error(std::string_view path, std::string_view encoding);

// Logs once per process and file that carriage returns at line ends are removed.
void note_crlf(const std::string& path);

}  // namespace redco

// Python's str functions: characters, str.isspace(), str.lower() and str.split(). Chat templates and metrics
// are defined in terms of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace redco {

// The characters of UTF-8 text; each maximal ill-formed part is U+FFFD.
std::u32string characters(std::string_view text);

bool is_python_space(char32_t c);  // str.isspace() of one character; also \s of Python's re
bool is_cased(char32_t c);         // an upper, lower or title case letter

// Appends str.lower() of s[i]. Unicode has two special cases: İ becomes i and a combining dot, and Σ at the
// end of a word becomes ς.
void append_lower(const std::u32string& s, std::size_t i, std::string& out);
std::string python_lower(std::string_view text);

// str.split(): the words between runs of white space.
std::vector<std::string> python_split(std::string_view text);

}  // namespace redco

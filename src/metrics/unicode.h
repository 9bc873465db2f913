// Text as Python's str sees it: characters, str.split() and str.lower(), which the metrics are defined by.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace redco {

// The characters of UTF-8 text; a byte that begins none is U+FFFD.
std::u32string characters(std::string_view text);

// str.isspace() of one character.
bool is_python_space(char32_t c);

// str.split(): the words between runs of white space.
std::vector<std::string> python_split(std::string_view text);

// str.lower(), with Unicode's two special cases: İ becomes i and a combining dot, Σ at a word's end ς.
std::string python_lower(std::string_view text);

}  // namespace redco

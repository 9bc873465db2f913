// Python's str functions on UTF-8 text. Positions count code points. unicode/python_text.h has lower case and
// white space.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace redco::jinja {

bool is_printable(char32_t c);  // str.isprintable
i64 code_points(std::string_view s);
// The byte offset of code point `index`; the size of the text for index >= its length. REQUIRES: index >= 0.
std::size_t byte_of(std::string_view s, i64 index);

// Spends the steps of a search for `what` in `s`. In the worst case it takes the product of their sizes.
void spend_search(std::string_view s, std::string_view what);

// chars: the code points to strip; nullopt: white space.
std::string_view strip_left(std::string_view s, std::optional<std::string_view> chars = std::nullopt);
std::string_view strip_right(std::string_view s, std::optional<std::string_view> chars = std::nullopt);
inline std::string_view strip(std::string_view s, std::optional<std::string_view> chars = std::nullopt) {
  return strip_left(strip_right(s, chars), chars);
}

std::string upper(std::string_view s);
std::string swapcase(std::string_view s);
std::string capitalize(std::string_view s);
std::string title(std::string_view s);         // str.title
std::string title_filter(std::string_view s);  // the filter: words start after -, white space, ( { [ <

// str.split and str.rsplit. separator: nullopt: white space; REQUIRES not empty.
std::vector<std::string_view> split(std::string_view s, std::optional<std::string_view> separator, i64 most,
                                    bool from_right);
std::vector<std::string_view> split_lines(std::string_view s, bool keep_ends = false);
std::string replace(std::string_view s, std::string_view from, std::string_view to, i64 most);

// str.isalpha and similar: whether the text is not empty and all its characters are in a class.
enum class TextTest : std::uint8_t { alpha, digit, decimal, alnum, space, ascii, printable };
bool all_are(std::string_view s, TextTest test);
bool is_lower(std::string_view s);  // has a cased character, and none of the other case
bool is_upper(std::string_view s);

}  // namespace redco::jinja

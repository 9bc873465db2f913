// Oniguruma's character classes, extended by the characters of later versions of Unicode. Hugging Face builds
// its library with a newer Oniguruma than the system has.
#pragma once

#include <string>
#include <string_view>

namespace redco {

// `pattern` with \p{L}, \w, \d and similar classes replaced by properties that include the newer characters.
// REQUIRES initialize_oniguruma().
std::string with_newer_characters(std::string_view pattern);

// Defines these properties. initialize_oniguruma() calls it once per process.
void define_newer_properties();

// Whether `category` (Lu) is in the class `name` (Lu, L, or Word).
bool category_is_in(std::string_view category, std::string_view name);

}  // namespace redco

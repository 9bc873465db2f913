// Oniguruma's classes of characters, with those of later versions of Unicode than the library here has:
// Hugging Face builds with a newer one.
#pragma once

#include <string>
#include <string_view>

namespace redco {

// `pattern` with \p{L}, \w, \d and their like replaced by properties that have the newer characters too.
// REQUIRES initialize_oniguruma().
std::string with_newer_characters(std::string_view pattern);

// Defines these properties. Once per process, by initialize_oniguruma().
void define_newer_properties();

// Whether `category` (Lu) is in the class `name` (Lu, L, or Word).
bool category_is_in(std::string_view category, std::string_view name);

}  // namespace redco

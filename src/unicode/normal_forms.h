// Unicode normal forms, restricted to the characters that Hugging Face's normalizers know.
#pragma once

#include <string>
#include <string_view>

namespace redco {

enum class NormalForm { nfc, nfd, nfkc, nfkd };

// REQUIRES valid UTF-8.
std::string to_normal_form(std::string_view text, NormalForm form);

// A fast check: true means that `text` is in that form. False means that it may or may not be.
bool surely_in_form(std::string_view text, NormalForm form);

}  // namespace redco

// Unicode's normal forms, over the characters that Hugging Face's normalizers know.
#pragma once

#include <string>
#include <string_view>

namespace redco {

enum class NormalForm { nfc, nfd, nfkc, nfkd };

// REQUIRES valid UTF-8.
std::string to_normal_form(std::string_view text, NormalForm form);

// True where `text` is in that form already; a quick look that may miss some.
bool surely_in_form(std::string_view text, NormalForm form);

}  // namespace redco

// Bytes as text of 64 characters, as tokenizer.json keeps a character map.
#pragma once

#include <string>
#include <string_view>

namespace redco {

std::string encode_base64(std::string_view bytes);

// The bytes of standard base64 with padding. ContentsError, with `where` in front, for anything else.
std::string decode_base64(std::string_view text, const std::string& where);

}  // namespace redco

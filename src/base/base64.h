// Base64 encoding and decoding (RFC 4648). tokenizer.json stores a character map in base64.
#pragma once

#include <string>
#include <string_view>

namespace redco {

std::string encode_base64(std::string_view bytes);

// Decodes standard base64 with padding. Throws ContentsError, whose message starts with `where`, for anything
// else.
std::string decode_base64(std::string_view text, const std::string& where);

}  // namespace redco

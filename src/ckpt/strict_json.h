// JSON of small hostile documents (indices, manifests, states): duplicate keys, deep nesting, invalid UTF-8
// and anything behind the document are errors, which nlohmann's own parse takes silently.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/types.h"

namespace redco::ckpt {

// ContentsError, which begins with `where` (a path).
nlohmann::json parse_strict_json(std::string_view text, const std::string& where, int max_depth = 32);
// The same of a file of at most max_bytes; memory is a small multiple of the file's size.
nlohmann::json read_strict_json(const std::string& path, i64 max_bytes);

// Text of a hostile file as messages show it: 200 bytes at most, control characters as ?.
std::string shown(std::string_view text);

}  // namespace redco::ckpt

// Strict parser for small, possibly hostile JSON documents (indices, manifests, states): duplicate keys, deep
// nesting, invalid UTF-8 and trailing text are errors, unlike in nlohmann's own parser.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/types.h"

namespace redco::ckpt {

// ContentsError that begins with `where` (a path).
nlohmann::json parse_strict_json(std::string_view text, const std::string& where, int max_depth = 32);
// Likewise for a file of at most max_bytes; memory is a small multiple of the file's size.
nlohmann::json read_strict_json(const std::string& path, i64 max_bytes);

// Text of a possibly hostile file for messages: at most 200 bytes, control characters as ?.
std::string shown(std::string_view text);

}  // namespace redco::ckpt

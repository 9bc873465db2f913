// Images and recordings inside of texts: in tables, as the library datasets writes them, and in lines of
// JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace redco {

// The file of an image or a recording as a data URI, "data:;base64,..."; nullopt for bytes that do not begin
// as a file of image_formats() does, or as is_audio() (data/audio/decode_audio.h).
std::optional<std::string> media_text_of(std::string_view bytes);

// The file in a data URI, or in base64 of an image's first bytes; nullopt for any other text, such as a path.
// ContentsError that begins with `where`: it is not base64.
std::optional<std::string> media_file_in(std::string_view text, const std::string& where);

// {"bytes": ..., "path": ...}, an image or a recording in a table, becomes one text: the bytes if there are
// any, else the path. Any other value stays.
void join_media_parts(nlohmann::ordered_json& value);

}  // namespace redco

#include "data/images/image_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "data/audio/decode_audio.h"
#include "data/images/image_formats.h"

namespace redco {

namespace {

constexpr std::string_view kScheme = "data:", kBase64 = ";base64,";
constexpr std::size_t kLongestPath = 4096;

// Whether the text begins as the base64 of an image: with the characters that the first bytes alone decide.
bool is_base64_of_image(std::string_view text) {
  for (const ImageFormat& f : image_formats())
    for (const std::string_view begin : f.begins)
      if (text.starts_with(encode_base64(begin).substr(0, begin.size() * 8 / 6))) return true;
  return false;
}

}  // namespace

std::optional<std::string> media_text_of(std::string_view bytes) {
  if (std::ranges::none_of(image_formats(), [&](const ImageFormat& f) { return f.is(bytes); }) &&
      !is_audio(bytes))
    return {};
  return std::string(kScheme) + std::string(kBase64) + encode_base64(bytes);
}

std::optional<std::string> media_file_in(std::string_view text, const std::string& where) {
  if (text.starts_with(kScheme)) {
    const std::size_t at = text.substr(0, kLongestPath).find(kBase64);
    if (at == std::string_view::npos) return {};
    return decode_base64(text.substr(at + kBase64.size()), where);
  }
  // A JPEG's base64 looks like a path, so it must be longer than one.
  if (!is_base64_of_image(text) || (text.starts_with('/') && text.size() <= kLongestPath)) return {};
  return decode_base64(text, where);
}

void join_media_parts(nlohmann::ordered_json& value) {
  if (!value.is_object() || value.size() != 2 || !value.contains("bytes") || !value.contains("path")) return;
  const auto text = [](const nlohmann::ordered_json& part) { return part.is_string() || part.is_null(); };
  if (!text(value["bytes"]) || !text(value["path"])) return;
  nlohmann::ordered_json one = std::move(value[value["bytes"].is_null() ? "path" : "bytes"]);
  value = std::move(one);
}

}  // namespace redco

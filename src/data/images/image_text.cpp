#include "data/images/image_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "data/audio/decode_audio.h"

namespace redco {

namespace {

constexpr std::string_view kScheme = "data:", kBase64 = ";base64,";
// The first bytes of PNG, JPEG and GIF files, and their base64.
constexpr std::string_view kBegins[] = {"\x89PNG\r\n\x1a\n", "\xff\xd8\xff", "GIF87a", "GIF89a"};
constexpr std::string_view kBase64Begins[] = {"iVBORw0KGgo", "/9j/", "R0lGODdh", "R0lGODlh"};
constexpr std::size_t kLongestPath = 4096;

}  // namespace

std::optional<std::string> media_text_of(std::string_view bytes) {
  if (std::ranges::none_of(kBegins, [&](std::string_view b) { return bytes.starts_with(b); }) &&
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
  const bool begins =
      std::ranges::any_of(kBase64Begins, [&](std::string_view b) { return text.starts_with(b); });
  if (!begins || (text.starts_with('/') && text.size() <= kLongestPath)) return {};
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

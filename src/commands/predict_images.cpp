#include "commands/predict_images.h"

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "data/images/image.h"

namespace redco {

using Json = nlohmann::ordered_json;

namespace {

// Letters of every alphabet stay; separators and control characters do not.
std::string safe_name(std::string name) {
  constexpr std::size_t kLongest = 100;  // file systems allow 255 bytes
  name = name.substr(0, kLongest);
  for (char& c : name)
    if (c == '/' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '_';
  return name;
}

}  // namespace

std::string save_images(const std::string& answer, const std::string& name, const std::string& folder) {
  Json j = Json::parse(answer, nullptr, false);
  if (!j.is_object()) return answer;
  int images = 0;
  for (auto& [member, value] : j.items()) {
    if (!value.is_string()) continue;
    const auto png = png_of_data_uri(value.get_ref<const std::string&>());
    if (!png) continue;
    const std::string path =
        join_path(folder, safe_name(name) + (images == 0 ? "" : "-" + safe_name(member)) + ".png");
    if (images++ == 0) make_dirs(folder);
    write_file_durable(path, *png);
    value = path;
  }
  return images == 0 ? answer : j.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace redco

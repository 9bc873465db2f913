#include "data/text/webdataset.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/ascii.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log_once.h"
#include "base/words.h"
#include "data/audio/decode_audio.h"
#include "data/images/image_folder.h"
#include "data/text/example_json.h"

namespace redco {

namespace {

using SampleJson = nlohmann::ordered_json;

// "a/0001" and "txt" of "a/0001.txt".
std::pair<std::string, std::string> key_and_ending(const std::string& name) {
  const std::size_t dot = name.find('.', name.rfind('/') + 1);
  if (dot == std::string::npos) return {name, ""};
  return {name.substr(0, dot), ascii_lower(name.substr(dot + 1))};
}

}  // namespace

std::string WebdatasetSamples::where() const { return fmt::format("{}:{}", members_.path(), excerpt(key_)); }

bool WebdatasetSamples::next(std::string& json) {
  problem_.clear();
  SampleJson sample = SampleJson::object();
  bool any = false;
  while (pending_ || members_.next()) {
    const auto [key, ending] = key_and_ending(members_.name());
    const std::string file = members_.name().substr(members_.name().rfind('/') + 1);
    if (file.starts_with(".") || ending.empty()) {
      pending_ = false;
      continue;
    }
    if (any && key != key_) {
      pending_ = true;
      break;
    }
    pending_ = false;
    any = true;
    key_ = key;
    const auto text = [&] { return members_.read(static_cast<i64>(LineReader::kMaxLine)); };
    const auto place = [&](const char* what) {
      if (members_.is_compressed())
        throw ContentsError(
            "{}: {} in a compressed archive; redco reads {} from their places in a plain one. Unpack it: "
            "gunzip or unzstd",
            members_.path(), what, what);
      return TarPlace{file_name(members_.path()), members_.offset(), members_.size(), members_.name()}.text();
    };
    if (is_image_name("x." + ending)) {
      sample["image"] = place("images");
    } else if (is_audio_name("x." + ending)) {
      sample["audio"] = place("recordings");
    } else if (ending == "txt") {
      sample["text"] = sample["caption"] = text();
    } else if (ending == "cls") {
      std::string label = text();
      while (!label.empty() && std::string_view(" \r\n\t").find(label.back()) != std::string_view::npos)
        label.pop_back();
      sample["label"] = label;
    } else if (ending == "json") {
      try {
        const SampleJson members = parse_example_line(text());
        for (const auto& [name, value] : members.items())
          if (!sample.contains(name)) sample[name] = value;
      } catch (const ContentsError& e) {
        problem_ = fmt::format("{}: {}", excerpt(members_.name()), e.what());
      }
    } else {
      log_once(
          LogLevel::info,
          fmt::format(
              "[data] {}: files .{} are not read; expected images, recordings (.{}), .txt, .cls and .json",
              members_.path(), excerpt(ending), fmt::join(audio_endings(), ", .")));
    }
  }
  if (!any) return false;
  ++number_;
  if (!sample.contains("id")) sample["id"] = key_;
  json = sample.dump(-1, ' ', false, SampleJson::error_handler_t::replace);
  return true;
}

}  // namespace redco

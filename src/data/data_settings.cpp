#include "data/data_settings.h"

#include "base/input_file.h"
#include "data/builtin.h"

namespace redco {

ExampleFields ExampleFields::without_shared() const {
  ExampleFields f = *this;
  const auto shared = [&](const std::optional<std::string>& key) {
    return key && (key == text || key == prompt || key == completion || key == messages);
  };
  if (shared(instruction) || shared(input) || shared(output))
    f.instruction = f.input = f.output = std::nullopt;
  if (shared(conversations)) f.conversations.reset();
  return f;
}

std::string format_by_name(const std::string& path) {
  if (is_builtin(path)) return "jsonl";
  const std::string name = name_unpacked(path);
  if (name.ends_with(".txt")) return "text";
  if (name.ends_with(".jsonl") || name.ends_with(".ndjson")) return "jsonl";
  for (const std::string format : {"tsv", "csv"})
    if (name.ends_with("." + format)) return format;
  return "";
}

std::string DataSettings::format_of(const std::vector<std::string>& files) const {
  if (format) return *format;
  std::string common;
  for (const std::string& f : files) {
    const std::string one = format_by_name(f);
    if (one.empty() || (!common.empty() && one != common)) return "text";
    common = one;
  }
  return common.empty() ? "text" : common;
}

bool DataSettings::is_jsonl() const {
  std::vector<std::string> all = train;
  all.insert(all.end(), eval.begin(), eval.end());
  return format_of(all) == "jsonl";
}

}  // namespace redco

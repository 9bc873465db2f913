#include "data/data_settings.h"

#include "data/builtin.h"

namespace redco {

namespace {

// The format of a file by its name; "" if the name doesn't tell.
std::string format_by_name(std::string path) {
  if (is_builtin(path)) return "jsonl";
  for (char& c : path)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  if (path.ends_with(".gz")) path.resize(path.size() - 3);
  if (path.ends_with(".jsonl") || path.ends_with(".ndjson")) return "jsonl";
  for (const std::string format : {"tsv", "csv"})
    if (path.ends_with("." + format)) return format;
  return "";
}

}  // namespace

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

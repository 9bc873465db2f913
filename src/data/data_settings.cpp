#include "data/data_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/input_file.h"
#include "data/builtin/builtin.h"
#include "data/text/record_map.h"

namespace redco {

ExampleFields ExampleFields::without_shared() const {
  ExampleFields f = *this;
  const auto shared = [&](const std::optional<std::string>& key) {
    return key && (key == text || key == prompt || key == completion || key == messages);
  };
  if (shared(instruction) || shared(input) || shared(output))
    f.instruction = f.input = f.output = std::nullopt;
  if (shared(conversations)) f.conversations.reset();
  const auto made = [](const std::optional<std::string>& key) { return key && is_template(*key); };
  const bool text_made = made(text), pair_made = made(prompt) || made(completion), chat_made = made(messages);
  if (text_made || pair_made || chat_made)
    f.instruction = f.input = f.output = f.conversations = std::nullopt;
  if (text_made || pair_made) f.messages.reset();
  if (text_made || chat_made) f.prompt = f.completion = std::nullopt;
  if (pair_made || chat_made) f.text.reset();
  return f;
}

std::string format_by_name(const std::string& path) {
  if (is_builtin(path)) return "jsonl";
  const std::string name = name_unpacked(path);
  if (name.ends_with(".txt")) return "text";
  if (name.ends_with(".jsonl") || name.ends_with(".ndjson")) return "jsonl";
  for (const std::string format : {"json", "tsv", "csv", "parquet"})
    if (name.ends_with("." + format)) return format;
  return "";
}

bool has_unknown_ending(const std::string& path) {
  if (!format_by_name(path).empty()) return false;
  const std::string name = file_name(name_unpacked(path));
  const auto dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0) return false;
  for (const std::string_view text : {"text", "tokens", "raw", "md", "rst", "tex"})
    if (std::string_view(name).substr(dot + 1) == text) return false;
  return true;
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

std::vector<DataSource> DataSettings::sources(bool evaluation) const {
  std::vector<DataSource> out;
  const std::vector<std::string>& unnamed = evaluation ? eval : train;
  if (!unnamed.empty()) out.push_back({.name = "", .files = unnamed});
  if (evaluation)
    for (const EvalSetSettings& s : eval_sets) out.push_back({.name = s.name, .files = s.files});
  else
    for (const MixtureSource& s : mixture)
      out.push_back({.name = s.name, .files = s.files, .weight = s.weight});
  return out;
}

std::vector<std::string> DataSettings::files(bool evaluation) const {
  std::vector<std::string> all;
  for (const DataSource& s : sources(evaluation)) all.insert(all.end(), s.files.begin(), s.files.end());
  return all;
}

void DataSettings::each_list(
    bool evaluation, const std::function<void(const std::string& key, std::vector<std::string>& files)>& f) {
  f(evaluation ? "data.eval" : "data.train", evaluation ? eval : train);
  if (evaluation)
    for (std::size_t i = 0; i < eval_sets.size(); ++i)
      f(fmt::format("data.eval_sets[{}].files", i), eval_sets[i].files);
  else
    for (std::size_t i = 0; i < mixture.size(); ++i)
      f(fmt::format("data.mixture[{}].files", i), mixture[i].files);
}

bool DataSettings::has_records() const {
  std::vector<std::string> all = files(false);
  for (std::string& f : files(true)) all.push_back(std::move(f));
  if (format) return *format != "text";
  return !all.empty() &&
         std::none_of(all.begin(), all.end(), [&](const auto& f) { return format_of({f}) == "text"; });
}

}  // namespace redco

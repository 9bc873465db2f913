#include "commands/predictions_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/input_file.h"
#include "base/words.h"

namespace redco {

using Json = nlohmann::ordered_json;

class PredictionsFile::Kept {
 public:
  explicit Kept(const std::string& path) : lines(path) {}
  LineReader lines;
};

namespace {

// The members in which two settings differ: "predict.seed was 42, is 43".
void differences(const Json& was, const Json& is, const std::string& prefix, std::vector<std::string>& out) {
  for (const auto& [key, value] : is.items()) {
    const std::string name = prefix.empty() ? key : prefix + "." + key;
    const Json before = was.is_object() && was.contains(key) ? was.at(key) : Json();
    if (value.is_object())
      differences(before, value, name, out);
    else if (before != value)
      out.push_back(fmt::format("{} was {}, is {}", name, excerpt(before.dump()), excerpt(value.dump())));
  }
  if (!was.is_object()) return;
  for (const auto& [key, value] : was.items())
    if (!is.contains(key))
      out.push_back(
          fmt::format("{}{}{} was {}", prefix, prefix.empty() ? "" : ".", key, excerpt(value.dump())));
}

i64 count_lines(const std::string& path) {
  InputFile f = InputFile::open(path);
  std::string buffer(1 << 16, '\0');
  i64 n = 0;
  while (const std::size_t got = f.read(buffer.data(), buffer.size()))
    n += std::count(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(got), '\n');
  return n;
}

}  // namespace

PredictionsFile::PredictionsFile(const std::string& path, const std::string& settings, bool overwrite)
    : path_(path) {
  const std::string beside = path + ".settings.json";
  const std::string advice = "predict.overwrite=true replaces the file; or name another predict.output";
  for (const char* end : {".gz", ".zst"})
    if (path.ends_with(end))
      throw UsageError(
          "[predict] predict.output={}: predictions are written uncompressed. Remove {} from the name", path,
          end);
  if (is_folder(path)) throw UsageError("[predict] predict.output={} is a folder", path);
  make_dirs(parent_path(path));
  lock_ = std::make_unique<FileLock>(
      join_path(parent_path(path), "." + file_name(path) + ".lock"), "[predict] predict.output=" + path,
      "wait until that one has ended, or name another predict.output", FileLock::removes);
  if (overwrite) {
    remove_file(path);
    remove_file(beside);
  }
  const Json now = Json::parse(settings);
  if (exists(path) && file_size(path) > 0) {
    if (!exists(beside))
      throw UsageError("[predict] {} exists, but {} doesn't, so its settings are unknown; {}", path, beside,
                       advice);
    const Json was = Json::parse(read_file(beside, 16 << 20), nullptr, false);
    std::vector<std::string> different;
    if (!was.is_object())
      different.push_back(beside + " can't be read");
    else
      differences(was, now, "", different);
    if (different.size() > 4) {
      different.resize(4);
      different.push_back("...");
    }
    if (!different.empty())
      throw UsageError("[predict] {} was made with other settings: {}; {}", path, fmt::join(different, ", "),
                       advice);
  } else {
    write_file_durable(beside, settings + "\n");
  }
  file_.emplace(AppendFile::open(path));
  kept_ = count_lines(path);
  if (kept_ > 0) reader_ = std::make_shared<Kept>(path);
}

void PredictionsFile::check(i64 i, const std::string& head, const std::string& where) {
  REDCO_CHECK(reader_ && i < kept_, "line {} of {}", i, kept_);
  std::string line;
  const std::string members = head.substr(0, head.size() - 1);  // without the closing brace
  if (reader_->lines.next(line) && line.starts_with(members + ",")) return;
  throw UsageError(
      "[predict] {}:{} does not answer {}: the file was begun with other prompts; predict.overwrite=true "
      "replaces the file; or name another predict.output",
      path_, i + 1, where);
}

void PredictionsFile::append(const std::string& lines) {
  if (lines.empty()) return;
  file_->append(lines);
  file_->sync();
}

}  // namespace redco

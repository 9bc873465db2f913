#include "data/index/data_folders.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/input_file.h"
#include "base/words.h"
#include "data/data_settings.h"
#include "data/images/image_folder.h"

namespace redco {

namespace {

constexpr int kMaxFolderDepth = 8;
constexpr i64 kMaxStateBytes = i64{16} << 20;

// JSON files that describe a data set.
bool is_dataset_metadata(const std::string& name) {
  return name == "dataset_info.json" || name == "dataset_infos.json" || name == "dataset_dict.json" ||
         name == "state.json";
}

// "" unless the word names a split.
std::string split_word(const std::string& word) {
  if (word == "train" || word == "training") return "train";
  if (word == "validation" || word == "valid" || word == "dev" || word == "val") return "validation";
  if (word == "test" || word == "testing" || word == "eval" || word == "evaluation") return "test";
  return "";
}

// The words between digits, spaces and - . _
std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (std::string_view("-._ 0123456789").find(c) == std::string_view::npos)
      words.back() += c;
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

class FolderSearch {
 public:
  FolderSearch(std::string folder, const std::optional<std::string>& format)
      : folder_(std::move(folder)), format_(format) {}

  FolderFiles run() {
    search("", 0);
    if (all_.empty() && json_.empty() && out_.has_folders) {
      out_.skipped = 0;
      out_.below = true;
      search("", 1);
    }
    // Beside data of another format, JSON files are usually metadata.
    if (all_.empty())
      all_ = std::move(json_);
    else
      out_.skipped += static_cast<i64>(json_.size());
    return std::move(out_);
  }
  std::vector<std::string>& found() { return all_; }  // relative to the folder

 private:
  // depth 0: only this folder.
  void search(const std::string& below, int depth) {
    for (const std::string& name : list_dir(join_path(folder_, below))) {
      if (name.starts_with(".")) continue;
      const std::string relative = below.empty() ? name : join_path(below, name);
      const std::string path = join_path(folder_, relative);
      const auto info = file_info(path);
      if (info && info->kind == FileInfo::folder) {
        out_.has_folders = true;
        if (depth > 0 && depth < kMaxFolderDepth) search(relative, depth + 1);
        continue;
      }
      const std::string one = format_by_name(name);
      if (!info || one.empty() || (format_ && one != *format_) || is_dataset_metadata(name)) {
        ++out_.skipped;
        if (out_.image.empty() && is_image_name(name)) out_.image = path;
        continue;
      }
      (one == "json" && !format_ ? json_ : all_).push_back(relative);
    }
  }

  std::string folder_;
  const std::optional<std::string>& format_;
  FolderFiles out_;
  std::vector<std::string> all_, json_;
};

// The split to use among `splits`.
std::string chosen_split(const std::string& folder, const std::set<std::string>& splits, bool evaluation) {
  if (splits.size() == 1) return *splits.begin();
  for (const std::string split : evaluation ? std::vector{"validation", "test"} : std::vector{"train", ""})
    if (splits.contains(split)) return split;
  std::vector<std::string> names;
  for (const std::string& s : splits) names.push_back(s.empty() ? "files of no split" : s);
  throw UsageError("the folder {} has no {}, but {}. Name the files, e.g. by a pattern", excerpt(folder, 200),
                   evaluation ? "validation or test split" : "train split", fmt::join(names, ", "));
}

// JSON in a folder of datasets.
nlohmann::json read_state(const std::string& path) {
  nlohmann::json j = nlohmann::json::parse(read_file(path, kMaxStateBytes), nullptr, false);
  if (!j.is_object()) throw ContentsError("{}: expected a JSON object. Save the data set again", path);
  return j;
}

// A name of a file or folder in this folder.
std::string plain_name(const nlohmann::json& j, const std::string& path) {
  const bool plain = j.is_string() && j != "" && j != "." && j != ".." &&
                     j.get<std::string>().find('/') == std::string::npos;
  if (!plain)
    throw ContentsError("{}: expected the names of files in the folder. Save the data set again", path);
  return j.get<std::string>();
}

// The folder of the split in a folder of several (DatasetDict.save_to_disk).
std::string folder_of_split(const std::string& folder, const std::string& path, bool evaluation) {
  const nlohmann::json j = read_state(path);
  if (!j.contains("splits") || !j["splits"].is_array() || j["splits"].empty())
    throw ContentsError("{}: expected a list \"splits\". Save the data set again", path);
  std::set<std::string> splits;
  for (const nlohmann::json& name : j["splits"]) {
    const std::string split = split_word(plain_name(name, path));
    splits.insert(split.empty() ? plain_name(name, path) : split);
  }
  const std::string chosen = chosen_split(folder, splits, evaluation);
  for (const nlohmann::json& name : j["splits"])
    if (name == chosen || split_word(name) == chosen) return join_path(folder, name);
  return folder;
}

// The files of a data set that datasets saved. Other files in the folder are its cache.
FolderFiles saved_files(const std::string& folder, const std::string& path) {
  FolderFiles out;
  out.format = "arrow";
  const nlohmann::json j = read_state(path);
  for (const nlohmann::json& f : j["_data_files"]) {
    if (!f.is_object() || !f.contains("filename")) plain_name({}, path);
    out.files.push_back(join_path(folder, plain_name(f["filename"], path)));
    if (!exists(out.files.back()))
      throw ContentsError("{}: it names {}, which does not exist. Copy the whole folder", path,
                          out.files.back());
  }
  return out;
}

}  // namespace

bool is_split_name(const std::string& name) { return !split_word(name).empty(); }

std::string folder_of_image_split(const std::string& folder, bool evaluation) {
  std::set<std::string> splits;
  std::vector<std::string> folders;
  for (const std::string& name : list_dir(folder)) {
    const auto info = file_info(join_path(folder, name));
    if (name.starts_with(".") || !info || info->kind != FileInfo::folder) continue;
    if (!is_split_name(name)) return "";
    folders.push_back(name);
    splits.insert(split_word(name));
  }
  if (splits.size() < 2) return "";
  const std::string chosen = chosen_split(folder, splits, evaluation);
  return join_path(folder, *std::ranges::find(folders, chosen, split_word));
}

std::string split_of(const std::string& path) {
  std::size_t at = 0;
  for (std::size_t end; (end = path.find('/', at)) != std::string::npos; at = end + 1)
    if (const std::string split = split_word(path.substr(at, end - at)); !split.empty()) return split;
  const std::string name = name_unpacked(path.substr(at));
  std::vector<std::string> words = words_of(name.substr(0, name.rfind('.')));
  if (words.size() > 1 && words.back() == "of") words.pop_back();  // 00000-of-00002
  if (words.empty() || (words.size() > 1 && format_by_name(path) == "text")) return "";
  const std::string first = split_word(words.front());
  return first.empty() ? split_word(words.back()) : first;
}

FolderFiles files_of_folder(const std::string& folder, const std::optional<std::string>& format,
                            bool evaluation) {
  if (format.value_or("arrow") == "arrow") {
    const std::string dict = join_path(folder, "dataset_dict.json"), state = join_path(folder, "state.json");
    if (exists(dict)) return files_of_folder(folder_of_split(folder, dict, evaluation), format, evaluation);
    if (exists(state) && read_state(state).contains("_data_files")) return saved_files(folder, state);
  }
  FolderSearch search(folder, format);
  FolderFiles out = search.run();
  std::set<std::string> splits;
  for (const std::string& f : search.found()) splits.insert(split_of(f));
  const std::string split = splits.empty() ? "" : chosen_split(folder, splits, evaluation);
  for (const std::string& f : search.found()) {
    if (split_of(f) != split) {
      ++out.other_splits;
      continue;
    }
    const std::string one = format_by_name(f), path = join_path(folder, f);
    if (out.files.empty()) out.format = one;
    if (one != out.format && out.other.empty()) out.other = path;
    out.files.push_back(path);
  }
  if (out.other_splits > 0) out.split = split;
  return out;
}

}  // namespace redco

#include "data/source_files.h"

#include <filesystem>

#include "base/error.h"
#include "base/file.h"

namespace redco {

void put(Hasher& h, u64 v) { h.update(&v, sizeof v); }

void put(Hasher& h, std::string_view text) {
  put(h, text.size());
  h.update(text.data(), text.size());
}

FileState state_of(const std::string& path) {
  const auto info = file_info(path);
  if (!info) throw UsageError("[data] {} does not exist", path);
  if (info->kind == FileInfo::folder)
    throw UsageError("[data] {} is a folder, expected a file. Give the files in it", path);
  std::error_code error;
  const auto time = std::filesystem::last_write_time(path, error);
  if (error) throw IoError("{}: {}", path, error.message());
  return {info->size, static_cast<i64>(time.time_since_epoch().count())};
}

SourceFiles::SourceFiles(std::vector<std::string> paths) : paths_(std::move(paths)) {
  if (paths_.empty()) throw UsageError("[data] no data files are given");
  for (const std::string& p : paths_) states_.push_back(state_of(p));
}

i64 SourceFiles::total_size() const {
  i64 total = 0;
  for (const FileState& s : states_) total += s.size;
  return total;
}

void SourceFiles::check_unchanged(std::size_t k) const {
  if (state_of(paths_[k]) != states_[k])
    throw ContentsError("{}: the file changed while it was read. Start again when it is complete", paths_[k]);
}

void SourceFiles::put_into(Hasher& h) const {
  for (std::size_t k = 0; k < paths_.size(); ++k) {
    std::error_code error;
    const auto whole = std::filesystem::canonical(paths_[k], error);
    put(h, error ? paths_[k] : whole.string());
    put(h, static_cast<u64>(states_[k].size));
    put(h, static_cast<u64>(states_[k].changed));
  }
}

std::string SourceFiles::words() const {
  std::string s = paths_.front();
  if (paths_.size() > 1) s += fmt::format(" and {} more", paths_.size() - 1);
  return s;
}

std::string SourceFiles::cache_path(const std::string& folder, const Hash128& key,
                                    std::string_view extension) const {
  const std::string stem = file_name(paths_.front()).substr(0, 60);
  return join_path(folder, fmt::format("{}-{}.{}", stem, key.hex(), extension));
}

}  // namespace redco

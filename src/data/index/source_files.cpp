#include "data/index/source_files.h"

#include "base/error.h"
#include "base/progress.h"

namespace redco {

void put(Hasher& h, u64 v) { h.update(&v, sizeof v); }

void put(Hasher& h, std::string_view text) {
  put(h, text.size());
  h.update(text.data(), text.size());
}

std::string words_of_files(const std::vector<std::string>& paths) {
  std::string s = paths.empty() ? "no files" : paths.front();
  if (paths.size() > 1) s += fmt::format(" and {} more", paths.size() - 1);
  return s;
}

std::string name_of_file(const std::vector<std::string>& paths, u64 k) {
  return k < paths.size() ? paths[k] : fmt::format("file {}", k + 1);
}

SourceFiles::SourceFiles(std::vector<std::string> paths, const std::string& cache_folder)
    : paths_(std::move(paths)) {
  if (paths_.empty()) throw UsageError("[data] no data files are given");
  LateProgress progress("hash data files");
  hashes_ = content_hashes(paths_, cache_folder, [&](i64 done, i64 total) { progress(done, total); });
}

i64 SourceFiles::total_size() const {
  i64 total = 0;
  for (const ContentHash& h : hashes_) total += h.stamp.size;
  return total;
}

void SourceFiles::check_unchanged(std::size_t k) const {
  // A new stamp alone may come from chmod, or from a copy with the same contents.
  if (exists(paths_[k]) &&
      (file_stamp(paths_[k]) == hashes_[k].stamp || hash_file(paths_[k]) == hashes_[k].hash))
    return;
  throw ContentsError("{}: the file changed while it was read. Start again when it is complete", paths_[k]);
}

void SourceFiles::put_into(Hasher& h) const {
  put(h, hashes_.size());
  for (const ContentHash& c : hashes_) {
    put(h, static_cast<u64>(c.stamp.size));
    put(h, c.hash.high);
    put(h, c.hash.low);
  }
}

}  // namespace redco

// The source files of a cached index, and the path of the cache.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/types.h"

namespace redco {

// Hash numbers, and texts with their lengths, so that different lists give different bytes.
void put(Hasher& h, u64 v);
void put(Hasher& h, std::string_view text);

struct FileState {
  i64 size;
  i64 changed;  // ns
  bool operator==(const FileState&) const = default;
};
// UsageError for what doesn't exist or is a folder.
FileState state_of(const std::string& path);

// The data files of one cache during its build.
class SourceFiles {
 public:
  explicit SourceFiles(std::vector<std::string> paths);  // UsageError for an empty list or a missing file

  const std::vector<std::string>& paths() const { return paths_; }
  i64 total_size() const;
  i64 size(std::size_t k) const { return states_[k].size; }
  // ContentsError if the file changed since construction.
  void check_unchanged(std::size_t k) const;
  // Hashes paths, sizes and times of change.
  void put_into(Hasher& h) const;
  // "a.txt and 2 more"
  std::string words() const;
  // FOLDER/NAME-KEY.EXTENSION, with the NAME of the first file.
  std::string cache_path(const std::string& folder, const Hash128& key, std::string_view extension) const;

 private:
  std::vector<std::string> paths_;
  std::vector<FileState> states_;
};

// Progress in stored bytes.
using BuildProgress = std::function<void(i64 done, i64 total)>;

}  // namespace redco

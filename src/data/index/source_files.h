// The source files of a cached index.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/types.h"
#include "data/index/content_hash.h"

namespace redco {

// Hash numbers, and texts with their lengths, so that different lists give different bytes.
void put(Hasher& h, u64 v);
void put(Hasher& h, std::string_view text);

// "a.txt and 2 more"
std::string words_of_files(const std::vector<std::string>& paths);
// The name of file k in messages. An index does not store the names of its files, because copies of them
// elsewhere give the same index.
std::string name_of_file(const std::vector<std::string>& paths, u64 k);

// The data files of one index.
class SourceFiles {
 public:
  // Hashes the contents of files that `cache_folder` does not remember; shows the progress if it takes long.
  // UsageError for an empty list. Other errors as content_hashes().
  SourceFiles(std::vector<std::string> paths, const std::string& cache_folder);

  const std::vector<std::string>& paths() const { return paths_; }
  i64 total_size() const;
  i64 size(std::size_t k) const { return hashes_[k].stamp.size; }
  // ContentsError if the file's contents changed since construction.
  void check_unchanged(std::size_t k) const;
  // Hashes the sizes and the hashes of the contents, in order.
  void put_into(Hasher& h) const;
  std::string words() const { return words_of_files(paths_); }

 private:
  std::vector<std::string> paths_;
  std::vector<ContentHash> hashes_;
};

// Progress in stored bytes.
using BuildProgress = std::function<void(i64 done, i64 total)>;

}  // namespace redco

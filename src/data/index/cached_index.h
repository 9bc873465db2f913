// Indexes in a cache folder: found, or built if they are missing.
//
// Several runs may share a folder at the same time, because an index is complete or absent: it is written
// under a unique temporary name and renamed at its end. Two runs that build the same index in parallel write
// the same bytes, and the last one stays.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log_once.h"
#include "base/timing.h"

namespace redco {

// An index that a run uses, for `redco data build`.
struct CachedIndex {
  std::string path;
  const char* unit;  // of its examples: "document", "example", "row"
  i64 examples = 0, tokens = 0;
  i64 bytes = 0;  // of the file
  bool built = false;
  double seconds = 0;  // to find and check it, or to build it
};

// While it lives, `seen` is called for each index that is found or built in this process. One at a time.
class IndexObserver {
 public:
  explicit IndexObserver(std::function<void(const CachedIndex&)> seen);
  ~IndexObserver();
  IndexObserver(const IndexObserver&) = delete;
  IndexObserver& operator=(const IndexObserver&) = delete;
  static const std::function<void(const CachedIndex&)>& current();  // empty: none
};

// Creates the folder for a new file in it. UsageError that names data.cache if it can't be written.
void prepare_cache(const std::string& folder, const std::string& file);

// FOLDER/KEY.EXTENSION
inline std::string index_path(const std::string& folder, const Hash128& key, const char* extension) {
  return join_path(folder, key.hex() + "." + extension);
}

// Whether `path` is an Index that opens and verifies. The log says once why a file is not.
template <class Index>
bool is_whole(const std::string& path) {
  if (!exists(path)) return false;
  try {
    Index::open(path).verify();
    return true;
  } catch (const ContentsError& e) {
    log_once(LogLevel::info, std::string("[data] ") + e.what());
    return false;
  }
}

// Returns `path`. If it is no whole Index, build() writes it; a broken file is replaced. begin: seconds()
// when the search began. counts(index) gives {unit, examples, tokens}.
template <class Index, class Build, class Counts>
std::string find_or_build(const std::string& path, double begin, const Build& build, const Counts& counts) {
  const bool found = is_whole<Index>(path);
  if (found) {
    debug("[data] found in cache: {}", path);
  } else {
    prepare_cache(parent_path(path), path);
    build();
  }
  if (const auto& seen = IndexObserver::current()) {
    CachedIndex index = counts(Index::open(path));
    index.path = path;
    index.bytes = file_size(path);
    index.built = !found;
    index.seconds = seconds() - begin;
    seen(index);
  }
  return path;
}

}  // namespace redco

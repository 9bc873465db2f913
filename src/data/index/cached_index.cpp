#include "data/index/cached_index.h"

namespace redco {

namespace {

std::function<void(const CachedIndex&)> index_observer;

}  // namespace

IndexObserver::IndexObserver(std::function<void(const CachedIndex&)> seen) {
  REDCO_CHECK(!index_observer, "two observers");
  index_observer = std::move(seen);
}
IndexObserver::~IndexObserver() { index_observer = nullptr; }
const std::function<void(const CachedIndex&)>& IndexObserver::current() { return index_observer; }

void prepare_cache(const std::string& folder, const std::string& file) {
  try {
    make_dirs(folder);
    DurableFile::create(file);  // its destructor removes the temporary file
  } catch (const IoError& e) {
    throw UsageError(
        "[data] the cache folder {} has no index of these data, and redco can't create one: {}. Set "
        "data.cache to a folder that redco can write, or build the index there with `redco data build JOB`",
        folder, e.what());
  }
}

}  // namespace redco

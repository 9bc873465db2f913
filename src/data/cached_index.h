// Check of a cached index file before it is built.
#pragma once

#include <string>

#include "base/error.h"
#include "base/file.h"

namespace redco {

// Whether `path` is an Index that opens and verifies. A broken file is rebuilt in place.
template <class Index>
bool is_whole(const std::string& path) {
  if (!exists(path)) return false;
  try {
    Index::open(path).verify();
    return true;
  } catch (const ContentsError&) {
    return false;
  }
}

}  // namespace redco

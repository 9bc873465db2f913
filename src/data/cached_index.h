// A file of an index under data's cache, asked for before it is built.
#pragma once

#include <string>

#include "base/error.h"
#include "base/file.h"

namespace redco {

// Whether `path` is an Index that opens and verifies. One that is broken is built again, over it.
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

// Hashes of the contents of data files. A memo in a folder remembers them, so that unchanged files are not
// read again at the next start.
//
// FOLDER/content-hashes.txt: a line with the format's version and the hash of the rest, then a line per file:
// the hash of its contents, its FileStamp (base/file.h) and its path. The memo only saves time: without it,
// and if it is damaged or can't be written, the files are hashed. A file that changed less than
// kMemoAge seconds before it was hashed is not remembered, because a later change could leave the same stamp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/hash.h"

namespace redco {

inline constexpr double kMemoAge = 2;  // s
inline constexpr const char* kMemoName = "content-hashes.txt";

struct ContentHash {
  FileStamp stamp;          // when the file was hashed
  Hash128 hash;             // XXH3 of the stored bytes, not unpacked
  bool remembered = false;  // from the memo: the file was not read
};

// Of each file, in this order. Files are hashed in parallel. progress(done, total) gets the bytes of the
// files that are read; one call at a time, from any thread. Several processes may use the same folder, which
// need not exist. UsageError: a path that does not exist or is not a regular file. ContentsError: a file that
// changes meanwhile. IoError: a file that can't be read.
std::vector<ContentHash> content_hashes(const std::vector<std::string>& paths, const std::string& folder,
                                        const std::function<void(i64 done, i64 total)>& progress = {});

}  // namespace redco

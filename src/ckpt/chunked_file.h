// ChunkedFile: a file whose pieces arrive in any order, with the hashes of its chunks (manifest.h).
//
// Windows of the file are assembled in memory. A complete window is hashed and written by a thread while the
// next one is filled, past the page cache where the file system allows it. So a save costs no memory of the
// page cache and reads nothing back: pieces that arrive in about the order of the file pass through memory
// once.
#pragma once

#include <cstdlib>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "base/worker.h"
#include "ckpt/manifest.h"

namespace redco::ckpt {

// Every byte must be written exactly once. Errors of the thread are thrown by a later call. For one thread.
class ChunkedFile {
 public:
  // Memory: at most kWindows windows. REQUIRES: window_bytes divides chunk_bytes, and DurableFile::kDirect
  // divides window_bytes.
  static constexpr i64 kWindowBytes = i64{8} << 20, kWindows = 7;
  // Reserves the space of the file, so that a full disk is an error here.
  ChunkedFile(const std::string& path, i64 size, i64 window_bytes = kWindowBytes,
              i64 chunk_bytes = kChunkBytes);

  void write(i64 offset, const void* from, i64 n);
  // Makes the complete file durable under its name. Returns the hashes of its chunks. BugError: a byte is
  // missing.
  std::vector<std::string> commit();
  // The chunks whose windows were not complete in the order of the file. Their bytes are read back.
  i64 chunks_read_back() const { return static_cast<i64>(again_.size()); }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  using AlignedBytes = std::unique_ptr<std::byte[], Free>;
  struct Window {
    AlignedBytes bytes;
    i64 filled = 0;
  };
  i64 size_of(i64 window) const { return std::min(window_, size_ - window * window_); }
  // Of the window's complete bytes, in the order of the calls.
  void hash(i64 window, const std::byte* bytes);
  void finish(std::map<i64, Window>::iterator at);
  void spill(std::map<i64, Window>::iterator at);
  void wait();

  DurableFile file_;
  i64 size_, window_, chunk_;
  std::map<i64, Window> open_;
  std::map<i64, i64> spilled_;  // windows that were written incomplete: bytes that they lack
  std::vector<AlignedBytes> free_;
  // Of the thread, while it works.
  std::map<i64, Hasher> hashers_;  // of chunks that are not complete
  std::map<i64, std::string> hashes_;
  std::map<i64, i64> next_;  // chunk -> the window that its hash needs next
  std::set<i64> again_;      // chunks to read back
  std::future<AlignedBytes> writing_;
  Worker worker_;  // the last member: its destructor waits for the work
};

}  // namespace redco::ckpt

// ChunkedFile: a file whose pieces arrive in any order, with the hashes of its chunks (manifest.h).
//
// Windows of the file are assembled in memory. Complete windows are hashed and written by threads while
// further ones are filled (write_queue.h), past the page cache where the file system allows it. So a save
// costs no memory of the page cache and reads nothing back: pieces that arrive in about the order of the file
// pass through memory once.
#pragma once

#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "ckpt/manifest.h"
#include "ckpt/write_queue.h"

namespace redco::ckpt {

// Every byte must be written exactly once. Errors of the threads are thrown by a later call. For one thread
// at a time.
class ChunkedFile {
 public:
  // Reserves the space of the file, so that a full disk is an error here. The queue outlives the file.
  // REQUIRES: its windows divide chunk_bytes, and DurableFile::kDirect divides them. Another file of the
  // queue has no incomplete window.
  ChunkedFile(const std::string& path, i64 size, WriteQueue& queue, i64 chunk_bytes = kChunkBytes);
  // Drops what is not written yet.
  ~ChunkedFile();
  ChunkedFile(const ChunkedFile&) = delete;
  ChunkedFile& operator=(const ChunkedFile&) = delete;

  void write(i64 offset, const void* from, i64 n);
  // Waits for the threads. Makes the complete file durable under its name. Returns the hashes of its chunks.
  // BugError: a byte is missing.
  std::vector<std::string> commit();
  // The chunks whose windows were not complete in the order of the file. Their bytes are read back.
  i64 chunks_read_back() const { return static_cast<i64>(again_.size()); }

 private:
  struct Window {
    std::byte* bytes = nullptr;
    i64 filled = 0;
  };
  i64 size_of(i64 window) const { return std::min(window_, size_ - window * window_); }
  Window& opened(i64 window);
  // Of the window's complete bytes, in the order of the calls.
  void hash(i64 window, const std::byte* bytes);
  void finish(std::map<i64, Window>::iterator at);
  void spill(std::map<i64, Window>::iterator at);
  // Runs f on a thread of the queue, unless the file has failed. Its error is the file's.
  template <class F>
  void guarded(const F& f);
  // Waits until no window is queued; the second one throws what a thread has thrown.
  void wait_quietly();
  void wait();

  WriteQueue& queue_;
  DurableFile file_;
  i64 size_, window_, chunk_;
  std::map<i64, Window> open_;
  std::map<i64, i64> spilled_;  // windows that were written incomplete: bytes that they lack
  // Of the hashing thread, while windows are queued.
  std::map<i64, Hasher> hashers_;  // of chunks that are not complete
  std::map<i64, std::string> hashes_;
  std::map<i64, i64> next_;  // chunk -> the window that its hash needs next
  std::set<i64> again_;      // chunks to read back
  // Shared with the threads.
  std::mutex mutex_;
  std::condition_variable done_;
  i64 queued_ = 0;
  std::exception_ptr failed_;
};

}  // namespace redco::ckpt

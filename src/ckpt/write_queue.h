// WriteQueue: the memory and the threads with which the files of a save are written.
//
// The memory consists of windows: pieces of a file that are filled in memory, hashed by one thread and
// written by two others. Files share them, one after the other.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

#include "base/types.h"
#include "base/worker.h"
#include "ckpt/pages.h"

namespace redco::ckpt {

// One thread takes windows. ChunkedFile uses it.
class WriteQueue {
 public:
  struct Size {
    i64 windows = 7, window_bytes = i64{8} << 20;
    i64 queued = 2;  // windows that are hashed and written at a time
  };
  // 56 MiB, of which 24 MiB are used if the pieces come in about the order of the file.
  WriteQueue() : WriteQueue(Size{}) {}
  explicit WriteQueue(const Size& size);
  // REQUIRES: its files are destroyed.
  ~WriteQueue();
  WriteQueue(const WriteQueue&) = delete;
  WriteQueue& operator=(const WriteQueue&) = delete;

  const Size& size() const { return size_; }
  // Of its windows, which become resident when they are first used.
  i64 bytes() const { return size_.windows * size_.window_bytes; }

  // A free window. Waits while all are in use and one of them is queued. Null: all are in use, and none is
  // queued.
  std::byte* take();
  // Gives back a window that was not queued.
  void give(std::byte* window);
  // Queues a taken window, and waits if `queued` windows are. `hash`, then `write` run on threads: all `hash`
  // in the order of the calls, `write` in any order. Then the window is free. REQUIRES: they don't throw.
  void push(std::byte* window, std::function<void()> hash, std::function<void()> write);
  // From now on, files drop what they have not written: their save has failed or is not wanted any more.
  void cancel();
  bool cancelled() const;

 private:
  Size size_;
  Pages memory_;
  mutable std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<std::byte*> free_;  // the last one is used next
  i64 queued_ = 0;
  bool cancelled_ = false;
  std::size_t turn_ = 0;
  // The last members: their destructors wait for the work. The hasher passes windows on to the writers.
  std::array<Worker, 2> writers_;
  Worker hasher_;
};

}  // namespace redco::ckpt

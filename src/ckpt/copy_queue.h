// CopyQueue: the copy that a save makes of its tensors, and the thread that lays the copy out in files.
//
// The rank's thread takes memory for a piece (rows of a tensor), copies the piece and puts a task that writes
// it to its file. A thread runs the tasks in their order: it transposes, joins and converts the pieces in the
// windows of a WriteQueue, whose threads hash and write. So the rank's thread copies each byte once, whatever
// the files look like. The memory is a ring. If it holds all pieces of a save, nobody waits for the disk;
// otherwise take() waits until the older pieces are in their files.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>

#include "base/worker.h"
#include "ckpt/pages.h"
#include "ckpt/write_queue.h"

namespace redco::ckpt {

class CopyQueue {
 public:
  struct Size {
    i64 copy_bytes = i64{16} << 20;  // of the ring
    i64 windows = WriteQueue::Size{}.windows;
    i64 bytes() const { return copy_bytes + windows * WriteQueue::Size{}.window_bytes; }
    bool operator==(const Size&) const = default;
  };
  // Of a save that is waited for: 72 MiB.
  CopyQueue() : CopyQueue(Size{}) {}
  explicit CopyQueue(const Size& size);
  // Drops the tasks that have not begun.
  ~CopyQueue();
  CopyQueue(const CopyQueue&) = delete;
  CopyQueue& operator=(const CopyQueue&) = delete;

  i64 bytes() const { return size_.bytes(); }
  i64 copy_bytes() const { return size_.copy_bytes; }
  // The ring becomes resident when it is first used, or by this call, on the thread.
  void make_resident();

  // Memory for the next piece. Waits for older ones. REQUIRES: 0 <= bytes <= copy_bytes().
  std::byte* take(i64 bytes);
  // Runs `write` on the thread, then frees the piece of the last take(). REQUIRES: it doesn't throw, and
  // exactly one put() follows each take().
  void put(std::function<void()> write);
  // Runs a task without a piece on the thread. REQUIRES: it doesn't throw.
  void run(std::function<void()> task);
  // Waits until all tasks have run.
  void drain();

  // For the tasks only: they run one at a time, and create the files.
  WriteQueue& files() { return files_; }
  // From now on, files drop what they have not written: their save has failed or is not wanted any more.
  void cancel() { files_.cancel(); }
  bool cancelled() const { return files_.cancelled(); }

 private:
  Size size_;
  Pages ring_;
  WriteQueue files_;
  std::mutex mutex_;
  std::condition_variable freed_;
  // Places in the ring, counted through all rounds: the used ones are [tail_, head_).
  i64 head_ = 0, tail_ = 0;
  std::deque<i64> ends_;  // of the pieces in the ring, the oldest first
  i64 tasks_ = 0;
  Worker worker_;  // the last member: its destructor waits for the work
};

}  // namespace redco::ckpt

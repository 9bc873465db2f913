#include "ckpt/write_queue.h"

#include <utility>

#include "base/error.h"

namespace redco::ckpt {

WriteQueue::WriteQueue(const Size& size) : size_(size), memory_(size.windows * size.window_bytes) {
  REDCO_CHECK(size.windows >= 1 && size.window_bytes >= 1 && size.queued >= 1, "{} x {}, {}", size.windows,
              size.window_bytes, size.queued);
  for (i64 i = size.windows; i-- > 0;) free_.push_back(memory_.data() + i * size.window_bytes);
}

WriteQueue::~WriteQueue() { cancel(); }  // the members wait for the threads

std::byte* WriteQueue::take() {
  std::unique_lock lock(mutex_);
  freed_.wait(lock, [&] { return !free_.empty() || queued_ == 0; });
  if (free_.empty()) return nullptr;
  std::byte* const window = free_.back();
  free_.pop_back();
  return window;
}

void WriteQueue::give(std::byte* window) {
  const std::lock_guard lock(mutex_);
  free_.push_back(window);
}

void WriteQueue::push(std::byte* window, std::function<void()> hash, std::function<void()> write) {
  {
    std::unique_lock lock(mutex_);
    freed_.wait(lock, [&] { return queued_ < size_.queued; });
    ++queued_;
  }
  hasher_.post([this, window, hash = std::move(hash), write = std::move(write)]() mutable {
    hash();
    writers_[turn_++ % writers_.size()].post([this, window, write = std::move(write)] {
      write();
      const std::lock_guard lock(mutex_);
      free_.push_back(window);
      --queued_;
      freed_.notify_all();
    });
  });
}

void WriteQueue::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
}

bool WriteQueue::cancelled() const {
  const std::lock_guard lock(mutex_);
  return cancelled_;
}

}  // namespace redco::ckpt

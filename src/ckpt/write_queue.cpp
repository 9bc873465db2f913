#include "ckpt/write_queue.h"

#include <sys/mman.h>

#include <new>
#include <utility>

#include "base/error.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14
#endif

namespace redco::ckpt {

WriteQueue::WriteQueue(const Size& size) : size_(size) {
  REDCO_CHECK(size.windows >= 1 && size.window_bytes >= 1 && size.queued >= 1, "{} x {}, {}", size.windows,
              size.window_bytes, size.queued);
  const auto bytes = static_cast<std::size_t>(this->bytes());
  void* const p =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  madvise(p, bytes, MADV_HUGEPAGE);  // advice to cause fewer page faults
  madvise(p, bytes, MADV_DONTDUMP);
  memory_ = {static_cast<std::byte*>(p), Unmap{bytes}};
  for (i64 i = size.windows; i-- > 0;) free_.push_back(memory_.get() + i * size.window_bytes);
}

WriteQueue::~WriteQueue() { cancel(); }  // ends make_resident(); the members wait for the threads

void WriteQueue::Unmap::operator()(std::byte* p) const { munmap(p, bytes); }

void WriteQueue::make_resident() {
  hasher_.post([this] {
    for (i64 i = 0; i < size_.windows && !cancelled(); ++i)
      madvise(memory_.get() + i * size_.window_bytes, static_cast<std::size_t>(size_.window_bytes),
              MADV_POPULATE_WRITE);  // older kernels do it when the window is used
  });
}

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

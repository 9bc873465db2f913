#include "ckpt/copy_queue.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace redco::ckpt {

CopyQueue::CopyQueue(const Size& size)
    : size_(size), ring_(size.copy_bytes), files_({.windows = size.windows}) {
  REDCO_CHECK(size.copy_bytes >= 0, "{}", size.copy_bytes);
}

CopyQueue::~CopyQueue() { cancel(); }

void CopyQueue::make_resident() {
  constexpr i64 kStep = i64{8} << 20;  // between two looks at cancelled()
  run([this] {
    for (i64 at = 0; at < ring_.bytes() && !cancelled(); at += kStep)
      ring_.populate(at, std::min(at + kStep, ring_.bytes()));
  });
}

std::byte* CopyQueue::take(i64 bytes) {
  const i64 all = size_.copy_bytes;
  REDCO_CHECK(bytes >= 0 && bytes <= all, "a piece of {} B in a copy of {} B", bytes, all);
  std::unique_lock lock(mutex_);
  i64 begin = 0;
  freed_.wait(lock, [&] {
    if (ends_.empty()) head_ = tail_ = 0;  // pieces of 0 B have an end too
    begin = head_;
    if (const i64 left = all - head_ % std::max<i64>(1, all); bytes > left)
      begin += left;  // pieces are whole
    return begin + bytes - tail_ <= all;
  });
  head_ = begin + bytes;
  ends_.push_back(head_);
  return ring_.data() + (all > 0 ? begin % all : 0);
}

void CopyQueue::put(std::function<void()> write) {
  run([this, write = std::move(write)] {
    write();
    const std::lock_guard lock(mutex_);
    tail_ = ends_.front();
    ends_.pop_front();
    freed_.notify_all();
  });
}

void CopyQueue::run(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    ++tasks_;
  }
  worker_.post([this, task = std::move(task)] {
    task();
    const std::lock_guard lock(mutex_);
    --tasks_;
    freed_.notify_all();
  });
}

void CopyQueue::drain() {
  std::unique_lock lock(mutex_);
  freed_.wait(lock, [&] { return tasks_ == 0; });
}

}  // namespace redco::ckpt

// Work that several threads do and one hands on, in the order in which it came.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "base/activity.h"

namespace redco {

// work(in) runs on `threads` threads of its own (on the caller's where that is 1 or less); done(out) on the
// caller's, in the order of add(). At most 4 pieces a thread wait, so memory is bounded. What work throws,
// add() or finish() throws, in that order, too; then the object is only to be destroyed.
template <class In, class Out>
class OrderedWork {
 public:
  OrderedWork(int threads, std::function<Out(In)> work, std::function<void(Out)> done)
      : work_(std::move(work)), done_(std::move(done)) {
    for (int i = 0; threads > 1 && i < threads; ++i) threads_.emplace_back([this] { run(); });
  }
  ~OrderedWork() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& t : threads_) t.join();
  }
  OrderedWork(const OrderedWork&) = delete;
  OrderedWork& operator=(const OrderedWork&) = delete;

  void add(In in) {
    activity::tick();
    if (threads_.empty()) return done_(work_(std::move(in)));
    std::packaged_task<Out()> task([this, in = std::move(in)]() mutable { return work_(std::move(in)); });
    results_.push_back(task.get_future());
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    wake_.notify_one();
    while (results_.size() > 4 * threads_.size()) hand_on();
  }
  void finish() {
    while (!results_.empty()) hand_on();
  }

 private:
  void hand_on() {
    std::future<Out> next = std::move(results_.front());
    results_.pop_front();
    done_(next.get());
  }
  void run() {
    for (;;) {
      std::packaged_task<Out()> task;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
        if (stopping_) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      task();
      activity::tick();
    }
  }

  std::function<Out(In)> work_;
  std::function<void(Out)> done_;
  std::vector<std::thread> threads_;
  std::deque<std::future<Out>> results_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::packaged_task<Out()>> tasks_;
  bool stopping_ = false;
};

}  // namespace redco

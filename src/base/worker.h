// Worker: a thread that is kept from task to task. To start a thread takes longer than many tasks.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace redco {

// Runs tasks one after the other, in the order of the calls. The thread starts with the first task; if the
// system starts none, tasks run when their result is taken. The destructor waits for all tasks.
class Worker {
 public:
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

  template <class F>
  auto run(F f) -> std::future<decltype(f())> {
    if (!starts()) return std::async(std::launch::deferred, std::move(f));
    std::packaged_task<decltype(f())()> task(std::move(f));
    auto result = task.get_future();
    add(std::packaged_task<void()>([task = std::move(task)]() mutable { task(); }));
    return result;
  }
  // A task without a result. If the system starts no thread, it runs now. REQUIRES: f doesn't throw.
  template <class F>
  void post(F f) {
    if (starts()) {
      add(std::packaged_task<void()>(std::move(f)));
    } else {
      f();
    }
  }

 private:
  bool starts() {
    if (thread_.joinable()) return true;
    try {
      thread_ = std::thread([this] { work(); });
    } catch (const std::system_error&) {
      return false;
    }
    return true;
  }
  void add(std::packaged_task<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    wake_.notify_one();
  }
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      task = {};  // what it holds ends here, not under the lock
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::packaged_task<void()>> tasks_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace redco

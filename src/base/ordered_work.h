// A worker pool with ordered results: several threads work, the caller gets the results in the order in which
// it added the inputs.
//
//   OrderedWork<std::string, Ids> pool(worker_threads(),
//                                      [&](std::string line, int) { return tokenizer.encode(line); },
//                                      [&](Ids ids) { writer.add(ids); });
//   pool.run([&] { return reader.next(); });  // std::optional<std::string>; nullopt ends
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "base/activity.h"

namespace redco {

// work(input, thread) runs on `threads` threads of the pool, with thread in [0, threads). With threads <= 1,
// or where the system starts no thread, it runs on the caller's thread. done(result) runs on the caller's
// thread, in the order of the inputs; it may be null. At most 4 inputs per thread are in flight, so memory is
// bounded.
//
// Errors: add(), finish() and run() throw the first exception of work() in the order of the inputs, after
// done() has seen every result before it. After an exception the object may only be destroyed.
template <class In, class Out>
class OrderedWork {
 public:
  OrderedWork(int threads, std::function<Out(In, int)> work, std::function<void(Out)> done)
      : work_(std::move(work)), done_(std::move(done)) {
    for (int t = 0; threads > 1 && t < threads; ++t) {
      try {
        threads_.emplace_back([this, t] { work_on_tasks(t); });
      } catch (const std::system_error&) {
        break;  // the threads that did start do the work
      }
    }
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
    if (threads_.empty()) return give(work_(std::move(in), 0));
    Task task([this, in = std::move(in)](int thread) mutable { return work_(std::move(in), thread); });
    results_.push_back(task.get_future());
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    wake_.notify_one();
    while (results_.size() > 4 * threads_.size()) give_next();
  }

  // Waits for all results.
  void finish() {
    while (!results_.empty()) give_next();
  }

  // Adds what next() returns, a std::optional<In>, until it is empty; then finishes. Where next() throws, the
  // results before come first, and an exception of work() among them wins.
  template <class Next>
  void run(Next&& next) {
    for (;;) {
      std::optional<In> in;
      try {
        in = next();
      } catch (...) {
        finish();
        throw;
      }
      if (!in) break;
      add(std::move(*in));
    }
    finish();
  }

 private:
  using Task = std::packaged_task<Out(int)>;

  void give(Out result) {
    if (done_) done_(std::move(result));
  }
  void give_next() {
    std::future<Out> next = std::move(results_.front());
    results_.pop_front();
    give(next.get());
  }
  void work_on_tasks(int thread) {
    for (;;) {
      Task task;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
        if (stopping_) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      task(thread);
      activity::tick();
    }
  }

  std::function<Out(In, int)> work_;
  std::function<void(Out)> done_;
  std::vector<std::thread> threads_;
  std::deque<std::future<Out>> results_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> tasks_;  // guarded by mutex_, as is stopping_
  bool stopping_ = false;
};

}  // namespace redco

#include "kernels/queue.h"

#include <array>
#include <condition_variable>
#include <deque>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.h"
#include "kernels/native.h"
#include "kernels/threads.h"

namespace redco {

namespace {

class DelayedQueue final : public Queue {
 public:
  DelayedQueue(const Device& device, int threads, int lag)
      : Queue(device, Mode::delayed),
        lag_(static_cast<std::size_t>(lag)),
        worker_([this, threads] { work(threads); }) {}
  ~DelayedQueue() override {
    {
      std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    worker_.join();
  }

 protected:
  void push(std::function<void()> call) override {
    std::unique_lock lock(mutex_);
    calls_.push_back(std::move(call));
    const bool enough = calls_.size() > lag_;
    lock.unlock();
    if (enough) changed_.notify_all();
  }

  void drain() override {
    std::unique_lock lock(mutex_);
    draining_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return calls_.empty() && !busy_; });
    draining_ = false;
    if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
  }

 private:
  void work(int threads) {
    kernels::set_threads(threads);
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock,
                    [this] { return ended_ || (!calls_.empty() && (draining_ || calls_.size() > lag_)); });
      if (calls_.empty()) return;
      // All calls but the last `lag`, or all if somebody waits.
      const std::size_t n = draining_ || ended_ ? calls_.size() : calls_.size() - lag_;
      const auto end = calls_.begin() + static_cast<std::ptrdiff_t>(n);
      const std::vector<std::function<void()>> ready(std::move_iterator(calls_.begin()),
                                                     std::move_iterator(end));
      calls_.erase(calls_.begin(), end);
      busy_ = true;
      lock.unlock();
      try {
        // After an error, later calls would compute on what the failed one left.
        for (const auto& call : ready)
          if (!failed_) call();
      } catch (...) {
        failed_ = std::current_exception();
      }
      lock.lock();
      busy_ = false;
      changed_.notify_all();
    }
  }

  const std::size_t lag_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> calls_;
  bool draining_ = false, busy_ = false, ended_ = false;
  std::exception_ptr failed_;  // written by the worker while busy_
  std::thread worker_;
};

class PlainQueue final : public Queue {
 public:
  PlainQueue(const Device& device, bool runs) : Queue(device, runs ? Mode::immediate : Mode::planned) {}
};

}  // namespace

std::shared_ptr<Queue> Queue::immediate(const Device& device) {
  return std::make_shared<PlainQueue>(device, true);
}
std::shared_ptr<Queue> Queue::planned(const Device& device) {
  return std::make_shared<PlainQueue>(device, false);
}
std::shared_ptr<Queue> Queue::delayed(const Device& device, int threads, int lag) {
  return std::make_shared<DelayedQueue>(device, threads, lag);
}

Queue::~Queue() {
  if (bad_id_bytes_ > 0) device_.release(bad_id_.data, bad_id_bytes_);
}

namespace {
using BadIdWords = std::array<i32, 3>;  // as check_ids writes them
}

void Queue::check_ids(const View& ids, const kernels::IdRange& range) {
  if (!bad_id_.present) {
    bad_id_.present = true;
    bad_id_.dtype = DType::i32;
    bad_id_.shape = {static_cast<i64>(std::tuple_size_v<BadIdWords>)};
    if (runs()) {
      bad_id_bytes_ = 4096;  // a page
      bad_id_.data = device_.reserve(&bad_id_bytes_);
      if (!bad_id_.data)
        throw Error(ExitCode::doesnt_fit, fmt::format("[memory] {} has no memory left", device_.name));
      const BadIdWords none{};
      write(none.data(), bad_id_.data, sizeof none);
    } else {
      bad_id_.data = DevicePtr::planned(i64{1} << 60);  // far from the arena
    }
  }
  run(kernels().check_ids, ids, range, bad_id_);
}

std::optional<BadId> Queue::take_bad_id() {
  if (!bad_id_.present || !runs()) return std::nullopt;
  BadIdWords words{};
  read(bad_id_.data, words.data(), sizeof words);
  if (words[0] == 0) return std::nullopt;
  const BadId found{static_cast<kernels::IdUse>(words[0] - 1), words[1], words[2]};
  words = {};
  write(words.data(), bad_id_.data, sizeof words);
  return found;
}

void* Queue::native(const DevicePtr& p) { return kernels::Native::address(p); }
std::vector<void*> Queue::native(const std::vector<DevicePtr>& places) {
  std::vector<void*> out;
  for (const DevicePtr& p : places) out.push_back(native(p));
  return out;
}

void Queue::write(const void* from, const DevicePtr& to, i64 bytes) {
  if (!runs() || bytes == 0) return;
  wait();
  device_.write(from, to, bytes);
}

void Queue::read(const DevicePtr& from, void* to, i64 bytes) {
  if (!runs() || bytes == 0) return;
  wait();
  device_.read(from, to, bytes);
}

void Queue::do_poison(const DevicePtr& p, i64 bytes) {
  View all;
  all.data = p;
  all.present = true;
  all.shape = {bytes / size_of(DType::f32)};
  push([run = kernels().fill.run, all] { run(all, std::numeric_limits<double>::quiet_NaN()); });
}

void Queue::throw_not_float(const char* kernel, DType t) {
  throw BugError(fmt::format("the kernel '{}' got a tensor of type {}{}", kernel, name_of(t),
                             t == DType::i32 ? "; to_float() makes numbers of ids" : ""));
}

void Queue::throw_missing(const char* kernel) const {
  throw Error(ExitCode::usage, fmt::format("[device] {} has no kernel '{}', which this model needs; see "
                                           "docs/add_a_device.md",
                                           device_.name, kernel));
}

}  // namespace redco

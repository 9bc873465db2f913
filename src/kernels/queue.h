// Queue: the order in which a rank's device does its work. Ops submit kernels and collectives; each runs
// after all that were submitted before it, and memory is reused in the same order. Only wait(), read() and
// write() make the host wait.
//
// The CPU's queue runs a call when it is submitted. A planned rank's queue runs nothing and counts. A delayed
// queue, for tests, runs calls late on another thread, and overwrites memory when it is allocated and
// when it is freed; so it finds code that reads results without waiting, or memory that it does not own.
//
// Kernels poll (base/background.h) between the pieces of their work, and after each kernel the queue does. So
// collectives that were started continue while kernels run.
//
// An op cannot throw because of an id out of range: its value is unknown when the op is submitted. So the
// queue keeps the first such id of all kernels (check_ids), and those who wait for results ask for it: the
// vote of a training step, evaluation and prediction (pipeline/bad_ids.h).
//
// The rank's thread submits; other threads may only call poison().
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <vector>

#include "base/background.h"
#include "kernels/call.h"
#include "kernels/table.h"

namespace redco {

// An id that an op does not accept.
struct BadId {
  kernels::IdUse use;
  i64 id, end;  // expected: below `end`
};

class Queue {
 public:
  static std::shared_ptr<Queue> immediate(const Device& device);
  static std::shared_ptr<Queue> planned(const Device& device);
  // threads: of the pool that its thread computes with. A call runs when `lag` more have been submitted, or
  // the host waits.
  static std::shared_ptr<Queue> delayed(const Device& device, int threads, int lag = 32);
  virtual ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  const Device& device() const { return device_; }
  const Kernels& kernels() const { return device_.kernels; }
  bool runs() const { return mode_ != Mode::planned; }
  i64 submitted() const { return submitted_; }  // kernels so far

  // Submits a kernel of this device's table. A kernel that the device lacks is an error, and so is a first
  // view or list of another type where the kernel takes fp32 and fp64.
  template <class... A>
  void run(const Kernel<A...>& kernel, const std::type_identity_t<A>&... args) {
    if (!kernel.run) throw_missing(kernel.name);
    if (kernel.takes != Takes::any) check_first(kernel.name, kernel.takes, args...);
    ++submitted_;
    if (mode_ == Mode::immediate && !watch_) {
      kernel.run(args...);
      background::poll();
      return;
    }
    if (visitor_) visitor_->kernel(KernelCall::of(kernel.name, args...));
    if (mode_ == Mode::immediate) {
      run_watched(kernel, watch_, args...);
    } else if (mode_ == Mode::delayed) {
      push([&kernel, watch = watch_, arguments = std::tuple<A...>(args...)] {
        std::apply([&](const A&... args) { run_watched(kernel, watch, args...); }, arguments);
      });
    }
  }

  // Submits a collective operation: f gets the native addresses of `memory` (of a list of places: a list), as
  // a communication library wants them (on a planned rank, addresses that nothing can read). Only
  // tensor/collectives.cpp calls it.
  template <class F, class... P>
  void communicate(F f, const P&... memory) {
    if (mode_ == Mode::delayed) {
      push([f = std::move(f), ... address = native(memory)]() mutable { f(address...); });
    } else {
      f(native(memory)...);
    }
  }

  // Waits until all work is done. Throws what a call has thrown.
  void wait() {
    if (mode_ == Mode::delayed) drain();
  }
  // Waits, and drops what a call has thrown: for destructors, which can't report it.
  void settle() noexcept {
    try {
      wait();
    } catch (...) {  // NOLINT
    }
  }
  // Copy `bytes` between the host's memory and the device's; both wait for all work before. On a planned rank
  // they do nothing.
  void write(const void* from, const DevicePtr& to, i64 bytes);
  void read(const DevicePtr& from, void* to, i64 bytes);

  // Submits check_ids. ids: i32.
  void check_ids(const View& ids, const kernels::IdRange& range);
  // Waits. The first id out of range since the last call; nullopt: none, or a planned rank.
  std::optional<BadId> take_bad_id();

  // Overwrites memory that is now unused, if the queue is a delayed one. REQUIRES: bytes % 4 == 0.
  void poison(const DevicePtr& p, i64 bytes) {
    if (mode_ == Mode::delayed && p && bytes > 0) do_poison(p, bytes);
  }

  using Clock = std::chrono::steady_clock;
  // Called after each kernel that has run, with the time when it began, on the thread that ran it; for
  // profiles. Null: none.
  using Watch = std::function<void(const char* kernel, Clock::time_point begin)>;
  void watch(Watch f) { watch_ = std::move(f); }
  // Sees each call when it is submitted, on a planned rank and on one with a watch. Null: none. It outlives
  // its use.
  void visit(CallVisitor* visitor) { visitor_ = visitor; }
  CallVisitor* visitor() const { return visitor_; }

 protected:
  enum class Mode : std::uint8_t { immediate, planned, delayed };
  Queue(const Device& device, Mode mode) : device_(device), mode_(mode) {}
  virtual void push(std::function<void()>) {}
  virtual void drain() {}

 private:
  template <class... A>
  static void run_watched(const Kernel<A...>& kernel, const Watch& watch, const A&... args) {
    const auto begin = Clock::now();
    kernel.run(args...);
    if (watch) watch(kernel.name, begin);
    background::poll();
  }
  static void check_first(const char* kernel, Takes takes, const View& v) {
    const bool fits = v.dtype == DType::f32 || v.dtype == DType::f64 ||
                      (takes == Takes::activations && v.dtype == DType::bf16);
    if (v.present && !fits) throw_not_float(kernel, v.dtype);
  }
  template <class... A>
  static void check_first(const char* kernel, Takes takes, const View& v, const A&...) {
    check_first(kernel, takes, v);
  }
  template <class... A>
  static void check_first(const char* kernel, Takes takes, const Views& list, const A&...) {
    for (const View& v : list) check_first(kernel, takes, v);
  }
  template <class T, class... A>
  static void check_first(const char* kernel, Takes takes, const T&, const A&... rest) {
    check_first(kernel, takes, rest...);
  }
  [[noreturn]] static void throw_not_float(const char* kernel, DType t);
  static void* native(const DevicePtr& p);
  static std::vector<void*> native(const std::vector<DevicePtr>& places);
  void do_poison(const DevicePtr& p, i64 bytes);
  [[noreturn]] void throw_missing(const char* kernel) const;
  const Device& device_;
  const Mode mode_;
  View bad_id_;  // of check_ids; reserved by the first one
  i64 bad_id_bytes_ = 0;
  i64 submitted_ = 0;
  Watch watch_;
  CallVisitor* visitor_ = nullptr;
};

}  // namespace redco

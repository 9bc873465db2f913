#include "tensor/arena.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "base/error.h"

namespace redco {

namespace {
i64 physical_memory() { return static_cast<i64>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE); }

// Half of the address space that `ulimit -v` allows. BLAS and the threads need the rest; without it they wait
// forever for memory.
i64 most_address_space() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return i64{1} << 62;
  i64 pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return (static_cast<i64>(limit.rlim_cur) - pages * sysconf(_SC_PAGESIZE)) / 2;
}
}  // namespace

Arena::Arena(std::shared_ptr<Queue> queue) : queue_(std::move(queue)) {
  reserved_ = i64{1} << 50;
  base_ = DevicePtr::planned(0);
  if (!queue_->runs()) return;
  // Reserves address space for twice the memory, because fragmentation may leave unused holes; less if a
  // limit forbids it.
  reserved_ = std::min(2 * physical_memory(), most_address_space());
  base_ = queue_->device().reserve(&reserved_);
  if (base_) return;
  throw Error(ExitCode::doesnt_fit,
              "[memory] the system refuses address space for tensors; check `ulimit -v`");
}

Arena::~Arena() {
  if (!base_ || !queue_->runs()) return;
  queue_->settle();  // work that was submitted may still use the memory
  queue_->device().release(base_, reserved_);
}

void Arena::insert_free(i64 offset, i64 bytes) {
  auto next = free_by_offset_.lower_bound(offset);
  if (next != free_by_offset_.end() && next->first == offset + bytes) {
    bytes += next->second;
    free_by_size_.erase({next->second, next->first});
    next = free_by_offset_.erase(next);
  }
  if (next != free_by_offset_.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == offset) {
      offset = before->first;
      bytes += before->second;
      free_by_size_.erase({before->second, before->first});
      free_by_offset_.erase(before);
    }
  }
  if (offset + bytes == end_) {
    end_ = offset;
    return;
  }
  free_by_offset_[offset] = bytes;
  free_by_size_.insert({bytes, offset});
}

i64 Arena::allocate(i64 bytes) {
  bytes = rounded(bytes);
  if (bytes == 0) return 0;
  std::lock_guard lock(mutex_);
  ++allocations_;
  i64 offset;
  auto fit = free_by_size_.lower_bound({bytes, 0});
  if (fit != free_by_size_.end()) {
    const auto [size, at] = *fit;
    // Small blocks are cut from the end of a hole, so that they split it less often (planned peaks of GPT-2:
    // up to 4 % lower).
    const bool small = bytes < size / 2;
    offset = small ? at + size - bytes : at;
    free_by_size_.erase(fit);
    free_by_offset_.erase(at);
    if (size > bytes) {
      const i64 rest = small ? at : at + bytes;
      free_by_offset_[rest] = size - bytes;
      free_by_size_.insert({size - bytes, rest});
    }
  } else {
    offset = end_;
    if (offset + bytes > reserved_)
      throw Error(ExitCode::doesnt_fit, fmt::format("[memory] a tensor of {} bytes does not fit: {} bytes "
                                                    "are in use of {} reserved; see `redco plan`",
                                                    bytes, in_use_, reserved_));
    end_ += bytes;
  }
  in_use_ += bytes;
  peak_in_use_ = std::max(peak_in_use_, in_use_);
  high_water_ = std::max(high_water_, offset + bytes);
  queue_->poison(at(offset), bytes);
  return offset;
}

void Arena::free(i64 offset, i64 bytes) {
  bytes = rounded(bytes);
  if (bytes == 0) return;
  std::lock_guard lock(mutex_);
  in_use_ -= bytes;
  queue_->poison(at(offset), bytes);
  insert_free(offset, bytes);
}

}  // namespace redco

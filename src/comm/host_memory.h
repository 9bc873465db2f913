// Memory that the ranks of one host share: each makes one segment, which the others map.
//
// A segment is an anonymous file (memfd) of a sealed size. So nothing lies in /dev/shm, its size limits
// nothing, and nothing is left behind by a killed process. The others open it as /proc/PID/fd/N. A random
// number that was exchanged through MPI proves that it is the right one: a process number of another PID
// namespace may be that of another process here. If a rank of a host cannot open a segment, none of the host
// uses them.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"

namespace redco {

// A mapped segment.
class MappedSegment {
 public:
  MappedSegment() = default;
  MappedSegment(std::byte* data, i64 bytes) : data_(data), bytes_(bytes) {}
  MappedSegment(MappedSegment&& o) noexcept
      : data_(std::exchange(o.data_, nullptr)), bytes_(std::exchange(o.bytes_, 0)) {}
  MappedSegment& operator=(MappedSegment&& o) noexcept {
    std::swap(data_, o.data_);
    std::swap(bytes_, o.bytes_);
    return *this;
  }
  ~MappedSegment();
  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  i64 bytes_ = 0;
};

struct HostMemory {
  int rank = 0;            // among the ranks of this host
  std::vector<int> ranks;  // of this host, as ranks of the world, ascending
  std::vector<MappedSegment> segments;
};

// Every rank's `mine` (`bytes` bytes), in rank order, on every rank.
using AllGather = std::function<void(const void* mine, void* all, int bytes)>;

// Collective over the world. host_of[r] is the host of rank r. A segment has bytes(n) bytes for n ranks of a
// host; the first kProofBytes are used here. Null: this rank is alone on its host, or the ranks of its host
// cannot share memory. Rank 0 logs the reason for each such host.
constexpr i64 kProofBytes = 64;
std::unique_ptr<HostMemory> share_memory(int rank, std::span<const int> host_of,
                                         const std::function<i64(int n)>& bytes, const AllGather& all_gather);

}  // namespace redco

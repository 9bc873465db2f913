#include "kernels/cpu/device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "kernels/native.h"

namespace redco {

namespace {

using kernels::Native;

DevicePtr reserve(i64* bytes) {
  const i64 least = std::min(*bytes, i64{1} << 28);
  for (; *bytes >= least; *bytes /= 2) {
    void* const p = mmap(nullptr, static_cast<std::size_t>(*bytes), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) continue;
    madvise(p, static_cast<std::size_t>(*bytes), MADV_HUGEPAGE);  // advice to cause fewer page faults
    madvise(p, static_cast<std::size_t>(*bytes), MADV_DONTDUMP);
    return Native::pointer(p);
  }
  return {};
}

// On all threads, because the first write to a page clears it.
void copy_bytes(const std::byte* from, std::byte* to, i64 bytes) {
  parallel::for_blocks(bytes, 1, [&](i64 begin, i64 end) {
    std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin));
  });
}

Device make_cpu() {
  Device d;
  d.name = "the CPU";
  d.kernels.takes_bf16 = true;
  for (const auto add :
       {kernels::add_attention, kernels::add_convolutions, kernels::add_copies, kernels::add_elementwise,
        kernels::add_embedding, kernels::add_experts, kernels::add_norms, kernels::add_optimizers,
        kernels::add_pooling, kernels::add_products, kernels::add_randomness, kernels::add_reductions,
        kernels::add_softmax})
    add(d.kernels);
  d.reserve = reserve;
  d.release = [](const DevicePtr& p, i64 bytes) {
    if (p) munmap(Native::address(p), static_cast<std::size_t>(bytes));
  };
  d.write = [](const void* from, const DevicePtr& to, i64 bytes) {
    copy_bytes(static_cast<const std::byte*>(from), Native::address(to), bytes);
  };
  d.read = [](const DevicePtr& from, void* to, i64 bytes) {
    copy_bytes(Native::address(from), static_cast<std::byte*>(to), bytes);
  };
  return d;
}

}  // namespace

const Device& cpu_device() {
  static const Device device = make_cpu();
  return device;
}

}  // namespace redco

#include "ckpt/pages.h"

#include <sys/mman.h>

#include <new>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14
#endif

namespace redco::ckpt {

Pages::Pages(i64 bytes) : bytes_(bytes) {
  const auto n = static_cast<std::size_t>(bytes);
  if (n == 0) return;
  void* const p =
      mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  madvise(p, n, MADV_HUGEPAGE);  // advice to cause fewer page faults
  madvise(p, n, MADV_DONTDUMP);
  memory_ = {static_cast<std::byte*>(p), Unmap{n}};
}

void Pages::Unmap::operator()(std::byte* p) const { munmap(p, bytes); }

void Pages::populate(i64 begin, i64 end) const {
  madvise(data() + begin, static_cast<std::size_t>(end - begin), MADV_POPULATE_WRITE);
}

}  // namespace redco::ckpt

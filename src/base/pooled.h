// make_pooled(): make_shared() for objects that are made and freed all the time. A freed block is kept for
// the next object of its type on the thread that freed it.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "base/sanitized.h"

namespace redco {

inline constexpr bool kPoolBlocks = !REDCO_SANITIZED;  // the sanitizers watch each block

template <class T>
class PooledAllocator {
 public:
  using value_type = T;
  PooledAllocator() = default;
  template <class U>
  PooledAllocator(const PooledAllocator<U>&) {}  // NOLINT: a conversion, as of every allocator

  T* allocate(std::size_t n) {
    Pool* const pool = n == 1 ? of_thread() : nullptr;
    if (!pool || !pool->first) return static_cast<T*>(::operator new(n * sizeof(T)));
    Block* const b = pool->first;
    pool->first = b->next;
    --pool->size;
    return reinterpret_cast<T*>(b);
  }
  void deallocate(T* p, std::size_t n) {
    Pool* const pool = n == 1 ? of_thread() : nullptr;
    if (!pool || pool->size >= kMost) return ::operator delete(p);
    pool->first = new (static_cast<void*>(p)) Block{pool->first};
    ++pool->size;
  }
  bool operator==(const PooledAllocator&) const { return true; }

 private:
  struct Block {
    Block* next;
  };
  static constexpr std::size_t kMost = 4096;  // blocks kept by a thread
  static_assert(sizeof(T) >= sizeof(Block) && alignof(T) <= alignof(std::max_align_t));
  struct Pool {
    Block* first = nullptr;
    std::size_t size = 0;
    ~Pool() {
      gone() = true;
      while (first) ::operator delete(std::exchange(first, first->next));
    }
    static bool& gone() {
      thread_local bool gone = false;  // trivial, so it is valid while the thread ends
      return gone;
    }
  };
  static Pool* of_thread() {
    if (!kPoolBlocks || Pool::gone()) return nullptr;
    thread_local Pool pool;
    return &pool;
  }
};

template <class T, class... A>
std::shared_ptr<T> make_pooled(A&&... args) {
  return std::allocate_shared<T>(PooledAllocator<T>(), std::forward<A>(args)...);
}

}  // namespace redco

// The copy of a save: a ring of pieces that a thread empties in their order.
#include "ckpt/copy_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>
#include <thread>
#include <vector>

namespace redco::ckpt {
namespace {

using namespace std::chrono_literals;

constexpr i64 kRing = 1000;

// Pieces of all sizes go through a ring that holds few of them. Each has its bytes when its task runs, though
// later ones are copied meanwhile, and none is cut at the end of the ring.
TEST(CopyQueue, PiecesKeepTheirBytesAndOrder) {
  CopyQueue queue({.copy_bytes = kRing, .windows = 1});
  queue.make_resident();
  std::vector<i64> seen;
  i64 wrong = 0;
  for (i64 k = 0; k < 500; ++k) {
    const i64 n = k % 7 == 0 ? kRing : k * 37 % 400;
    std::byte* const piece = queue.take(n);
    std::memset(piece, static_cast<int>(k % 251), static_cast<std::size_t>(n));
    queue.put([&, piece, n, k] {
      seen.push_back(k);
      for (i64 i = 0; i < n; ++i) wrong += piece[i] != static_cast<std::byte>(k % 251);
    });
  }
  queue.drain();
  EXPECT_EQ(wrong, 0);
  ASSERT_EQ(seen.size(), 500U);
  EXPECT_TRUE(std::ranges::is_sorted(seen));
}

// A piece of 0 B (an empty shard) that is the only one left keeps the places of the pieces after it: none of
// them is given out twice.
TEST(CopyQueue, AnEmptyPieceKeepsItsPlace) {
  CopyQueue queue({.copy_bytes = kRing, .windows = 1});
  std::promise<void> empty, next;
  const auto piece = [&](i64 bytes, const std::shared_future<void>& until) {
    queue.take(bytes);
    queue.put([until] {
      if (until.valid()) until.wait();
    });
  };
  piece(500, {});
  piece(0, empty.get_future().share());
  std::this_thread::sleep_for(20ms);  // the first piece is gone
  piece(100, next.get_future().share());
  empty.set_value();
  std::this_thread::sleep_for(20ms);
  piece(400, {});
  piece(500, {});
  auto more = std::async(std::launch::async, [&] { piece(1, {}); });  // 1000 B are in use
  EXPECT_EQ(more.wait_for(20ms), std::future_status::timeout);
  next.set_value();
  more.get();
  queue.drain();
}

// A copy of all pieces never waits for their tasks, also in the next save. A smaller one waits until the
// oldest pieces are gone.
TEST(CopyQueue, WaitsOnlyIfTheRingIsFull) {
  CopyQueue queue({.copy_bytes = kRing, .windows = 1});
  for (int save = 0; save < 2; ++save) {
    std::promise<void> release;
    const std::shared_future<void> released = release.get_future().share();
    for (int k = 0; k < 4; ++k) {
      queue.take(kRing / 4);  // would wait forever for memory
      queue.put([released] { released.wait(); });
    }
    auto next = std::async(std::launch::async, [&] {
      queue.take(1);
      queue.put([] {});
    });
    EXPECT_EQ(next.wait_for(20ms), std::future_status::timeout);
    release.set_value();
    next.get();
    queue.drain();
  }
}

}  // namespace
}  // namespace redco::ckpt

#include "tensor/arena.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "support/ranks.h"

namespace redco {
namespace {

using redco::testing::Random;

std::shared_ptr<Queue> real_queue() { return Queue::immediate(cpu_device()); }
std::shared_ptr<Queue> planned_queue() { return Queue::planned(cpu_device()); }

TEST(Arena, UsesTheBestFitAndMergesFreeBlocks) {
  Arena a(planned_queue());
  const i64 x = a.allocate(1000), y = a.allocate(64), z = a.allocate(200), end = a.allocate(1);
  EXPECT_EQ(x % Arena::kAlign, 0);
  a.free(x, 1000);
  a.free(z, 200);
  EXPECT_EQ(a.allocate(150), z);  // the smaller hole that fits
  EXPECT_EQ(a.allocate(900), x);
  a.free(z, 150);
  a.free(y, 64);
  a.free(x, 900);
  EXPECT_EQ(a.allocate(1000 + 64 + 200), x);  // merged to one hole
  a.free(x, 1264);
  a.free(end, 1);
  EXPECT_EQ(a.in_use(), 0);
  EXPECT_TRUE(a.is_planned());
  EXPECT_EQ(a.at(64), DevicePtr::planned(64));  // a place; there is no memory
}

TEST(Arena, EmptyTensorsTakeNothing) {
  Arena a(real_queue());
  EXPECT_EQ(a.allocate(0), 0);
  EXPECT_EQ(a.in_use(), 0);
  EXPECT_EQ(a.allocations(), 0);
  EXPECT_TRUE(a.at(0));
}

TEST(Arena, AnAllocationThatDoesNotFitNamesRedcoPlan) {
  Arena a(planned_queue());
  try {
    a.allocate(i64{1} << 51);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::doesnt_fit);
    EXPECT_NE(std::string(e.what()).find("redco plan"), std::string::npos);
  }
  EXPECT_EQ(a.in_use(), 0);
  EXPECT_EQ(a.allocate(64), 0);  // still usable
}

// Random lifetimes: blocks never overlap, and an arena without memory gives the same offsets and peaks.
TEST(Arena, BlocksWithRandomLifetimesNeverOverlap) {
  const auto queue = real_queue();
  Arena real(queue), planned(planned_queue());
  Random random(1);
  std::map<i64, std::pair<i64, unsigned char>> live;  // offset -> (bytes, mark)
  i64 in_use = 0, peak = 0;
  for (int round = 0; round < 20000; ++round) {
    if (live.empty() || (live.size() < 60 && random.below(2))) {
      const i64 bytes = 1 + random.below(random.below(10) == 0 ? 100000 : 1000);
      const i64 at = real.allocate(bytes);
      ASSERT_EQ(planned.allocate(bytes), at);
      auto next = live.lower_bound(at);
      if (next != live.end()) {
        ASSERT_LE(at + bytes, next->first);
      }
      if (next != live.begin()) {
        ASSERT_LE(std::prev(next)->first + std::prev(next)->second.first, at);
      }
      const auto mark = static_cast<unsigned char>(random.below(256));
      queue->write(std::string(bytes, static_cast<char>(mark)).data(), real.at(at), bytes);
      live[at] = {bytes, mark};
      in_use += Arena::rounded(bytes);
      peak = std::max(peak, in_use);
    } else {
      auto it = std::next(live.begin(), random.below(static_cast<i64>(live.size())));
      for (const i64 i : {i64{0}, it->second.first - 1}) {
        unsigned char byte = 0;
        queue->read(real.at(it->first).plus(i), &byte, 1);
        ASSERT_EQ(byte, it->second.second);
      }
      real.free(it->first, it->second.first);
      planned.free(it->first, it->second.first);
      in_use -= Arena::rounded(it->second.first);
      live.erase(it);
    }
    ASSERT_EQ(real.in_use(), in_use);
  }
  EXPECT_EQ(real.peak_in_use(), peak);
  EXPECT_EQ(planned.peak_in_use(), peak);
  EXPECT_EQ(planned.high_water(), real.high_water());
}

}  // namespace
}  // namespace redco

#include "kernels/threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "kernels/kernels_testing.h"

namespace redco::kernels {
namespace {

TEST(Threads, EveryIndexIsVisitedOnce) {
  for (i64 n : {0, 1, 5, 1000, 4097})
    for (i64 grain : {1, 7, 5000}) {
      std::vector<std::atomic<int>> seen(static_cast<std::size_t>(n));
      parallel_for(n, grain, [&](i64 begin, i64 end) {
        ASSERT_LT(begin, end);
        for (i64 i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
      });
      for (auto& s : seen) EXPECT_EQ(s, 1);
    }
}

TEST(Threads, NestedCallsRunOnTheCallingThread) {
  std::atomic<int> total{0};
  parallel_for(4, 1, [&](i64 begin, i64 end) {
    for (i64 i = begin; i < end; ++i)
      parallel_for(100, 1, [&](i64 b, i64 e) { total += static_cast<int>(e - b); });
  });
  EXPECT_EQ(total, 400);
}

TEST(Threads, AnExceptionReachesTheCaller) {
  EXPECT_THROW(parallel_for(1000, 1, [](i64, i64) { throw std::runtime_error("x"); }), std::runtime_error);
}

TEST(Threads, EveryThreadHasItsOwnCount) {
  const int before = threads();
  set_threads(3);
  int inside = 0;
  std::thread([&] {
    set_threads(1);
    inside = threads();
  }).join();
  EXPECT_EQ(inside, 1);
  EXPECT_EQ(threads(), 3);
  set_threads(before);
}

TEST(Threads, BlasIsTheOpenMpBuild) {
  EXPECT_NO_THROW(check_blas());
  EXPECT_THAT(describe(), testing::HasSubstr("OpenMP"));
  EXPECT_THAT(describe(), testing::HasSubstr(name_of(isa())));
}

}  // namespace
}  // namespace redco::kernels

#include "kernels/threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "kernels/cpu/shares.h"
#include "kernels/kernels_testing.h"

namespace redco::kernels {
namespace {

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

TEST(Shares, AThreadTakesItsOwnPiecesFirst) {
  Shares shares(10, 3);
  std::vector<i64> taken;
  const auto take = [&](i64 i) { taken.push_back(i); };
  shares.take(1, take);
  EXPECT_THAT(taken, testing::ElementsAre(3, 4, 5, 6, 7, 8, 9, 0, 1, 2));
  shares.take(0, take);
  EXPECT_EQ(taken.size(), 10u);
}

TEST(Shares, EachPieceIsTakenOnce) {
  for (const int threads : {1, 2, 7, 16, 40})
    for (const i64 n : {1, 2, 15, 16, 1000}) {
      Shares shares(n, threads);
      std::vector<std::atomic<int>> times(static_cast<std::size_t>(n));
      std::vector<std::thread> all;
      for (int t = 0; t < threads; ++t)
        all.emplace_back([&, t] { shares.take(t, [&](i64 i) { ++times[static_cast<std::size_t>(i)]; }); });
      for (std::thread& t : all) t.join();
      EXPECT_THAT(times, testing::Each(testing::Eq(1))) << threads << " threads, " << n << " pieces";
    }
}

TEST(Threads, BlasIsTheOpenMpBuild) {
  EXPECT_NO_THROW(check_blas());
  EXPECT_THAT(describe(), testing::HasSubstr("OpenMP"));
  EXPECT_THAT(describe(), testing::HasSubstr(name_of(isa())));
}

TEST(BlasCore, OnlyKernelsWithoutAvxAreReplaced) {
  EXPECT_EQ(better_blas_core("Prescott", Isa::avx512), "SkylakeX");
  EXPECT_EQ(better_blas_core("Prescott", Isa::avx2), "Haswell");
  EXPECT_EQ(better_blas_core("Nehalem", Isa::avx2), "Haswell");
  EXPECT_EQ(better_blas_core("Prescott", Isa::baseline), "");
  for (const char* good : {"Haswell", "SkylakeX", "Cooperlake", "SapphireRapids", "Zen", "Sandybridge"})
    EXPECT_EQ(better_blas_core(good, Isa::avx512), "");
}

}  // namespace
}  // namespace redco::kernels

#include "kernels/threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "kernels/cpu/contention.h"
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

TEST(Contention, PausesAndLooksAgain) {
  double now = 100;
  i64 switches = 7;
  Contention c(now, switches);
  const auto after = [&](double passed, i64 more) {
    c.update(now += passed, switches += more);
    return c.found();
  };
  constexpr double kWindow = 1.01 * Contention::kWindow, kPause = 1.01 * Contention::kPause;
  EXPECT_FALSE(after(0, 0));
  EXPECT_FALSE(after(kWindow, 10));  // 200 per second
  EXPECT_FALSE(after(kWindow / 2, 100));
  EXPECT_TRUE(after(kWindow / 2, 0));
  EXPECT_TRUE(after(kPause / 2, 0));
  EXPECT_FALSE(after(kPause / 2, 0));
  EXPECT_TRUE(after(kWindow, 50));
  EXPECT_TRUE(after(kPause, 0));  // the second pause is twice as long
  EXPECT_FALSE(after(kPause, 0));
  EXPECT_FALSE(after(kWindow, 0));
  EXPECT_TRUE(after(kWindow, 50));
  EXPECT_FALSE(after(kPause, 0));
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

#include "kernels/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "kernels/kernels_testing.h"

namespace redco::kernels {
namespace {

TEST(Sampling, WeightsSumsAndBucketsAgreeWithTheSlowTwin) {
  on_every_isa([] {
    for (const i64 n : {0, 1, 7, 300, 1000}) {
      auto x = random_array<float>(n, 1, 5);
      for (i64 i = 3; i < n; i += 10) x[i] = i % 20 == 3 ? kNan : -kInf;
      const float top = 5.5f, cut = -4.0f;
      const ScoreWeights<float> of{top, 0.5f, cut, 1e-3f};
      const ScoreRange<float> range = range_of_scores(x.data(), n, cut);
      const ScoreBuckets<float> buckets(top, cut);
      std::vector<float> w(static_cast<std::size_t>(n), -1);
      std::vector<double> mass(kScoreBuckets), want_mass(kScoreBuckets);
      std::vector<i32> count(kScoreBuckets), want_count(kScoreBuckets);
      weigh(x.data(), n, of, w.data());
      add_to_buckets(x.data(), n, of, buckets, mass.data(), count.data());
      float high = -kInf, low = kInf;
      double sum = 0;
      for (i64 i = 0; i < n; ++i) {
        const bool counts = x[i] >= cut;
        const double e = std::exp((static_cast<double>(x[i]) - top) / 2), want = counts && e >= 1e-3 ? e : 0;
        EXPECT_NEAR(w[i], want, 1e-6 * std::max(1.0, want));  // fp32 has 24 bits
        sum += want;
        want_mass[static_cast<std::size_t>(buckets.of(x[i]))] += want;
        want_count[static_cast<std::size_t>(buckets.of(x[i]))] += counts;
        if (!counts) continue;
        high = std::max(high, x[i]);
        low = std::min(low, x[i]);
      }
      EXPECT_EQ(range.high, high);
      EXPECT_EQ(range.low, low);
      EXPECT_NEAR(sum_of_weights(x.data(), n, of), sum, 1e-4);
      EXPECT_EQ(count, want_count);
      for (int b = 0; b < kScoreBuckets; ++b) EXPECT_NEAR(mass[b], want_mass[b], 1e-5) << b;
    }
  });
}

TEST(Sampling, TheFirstOfTheHighestScores) {
  on_every_isa([] {
    const std::vector<float> x = {2, kNan, 5, 5, -kInf, 1}, none = {kNan, -kInf}, most = {1, kInf, kInf};
    EXPECT_EQ(first_of_highest(x.data(), 6), 2);
    EXPECT_EQ(first_of_highest(none.data(), 2), -1);
    EXPECT_EQ(first_of_highest(none.data(), 0), -1);
    EXPECT_EQ(first_of_highest(most.data(), 3), 1);
  });
}

// Any two scores are distinguished, however near or far: the highest is in the first bucket, the lowest in
// the last.
TEST(Sampling, BucketsAlwaysDivide) {
  constexpr float kMost = std::numeric_limits<float>::max(),
                  kLeast = std::numeric_limits<float>::denorm_min();
  for (const auto& [high, low] : {std::pair{1.0f, -1.0f},
                                  {kMost, -kMost},
                                  {kLeast, 0.0f},
                                  {1.0f, 0.99999994f},
                                  {kMost, 0.0f},
                                  {-1e30f, -kMost}}) {
    const ScoreBuckets<float> b(high, low);
    EXPECT_EQ(b.of(high), 0) << high;
    EXPECT_EQ(b.of(low), kScoreBuckets - 1) << high << " " << low;
    EXPECT_EQ(ScoreBuckets<float>(high, high).of(high), 0);
  }
}

}  // namespace
}  // namespace redco::kernels

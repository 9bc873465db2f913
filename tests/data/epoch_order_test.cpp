#include "data/index/epoch_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace redco {
namespace {

std::vector<i64> order_of(const EpochOrder& o) {
  std::vector<i64> v;
  for (i64 k = 0; k < o.size(); ++k) v.push_back(o.at(k));
  return v;
}

TEST(EpochOrder, IsAPermutation) {
  for (i64 n : {1, 2, 3, 4, 5, 7, 8, 9, 100, 1023, 1024, 1025, 70000}) {
    auto v = order_of(EpochOrder(n, 42, 3));
    ASSERT_EQ(static_cast<i64>(v.size()), n);
    std::sort(v.begin(), v.end());
    for (i64 k = 0; k < n; ++k) ASSERT_EQ(v[static_cast<std::size_t>(k)], k) << n;
  }
  EXPECT_EQ(EpochOrder(0, 1, 1).size(), 0);
  const EpochOrder huge((i64{1} << 40) + 12345, 1, 1);
  for (i64 k : {i64{0}, i64{1}, huge.size() - 1}) {
    EXPECT_GE(huge.at(k), 0);
    EXPECT_LT(huge.at(k), huge.size());
  }
}

TEST(EpochOrder, DependsOnSeedAndEpochOnly) {
  EXPECT_EQ(order_of(EpochOrder(100, 42, 3)), order_of(EpochOrder(100, 42, 3)));
  EXPECT_NE(order_of(EpochOrder(100, 42, 3)), order_of(EpochOrder(100, 42, 4)));
  EXPECT_NE(order_of(EpochOrder(100, 42, 3)), order_of(EpochOrder(100, 43, 3)));
  EXPECT_EQ(EpochOrder(100, 42, 3, false).at(17), 17);
}

TEST(EpochOrder, ARangeHasTheExamplesOfItsPositions) {
  // Around the sizes of a block and of a power of two, where most values are mapped again.
  for (i64 n : {0, 1, 2, 31, 32, 33, 65, 256, 257, 1000})
    for (bool shuffle : {true, false}) {
      const EpochOrder o(n, 42, 3, shuffle);
      const std::vector<i64> all = order_of(o);
      EXPECT_EQ(o.range(0, n), all) << n;
      for (const i64 begin : {n / 3, n})
        EXPECT_EQ(o.range(begin, n), std::vector<i64>(all.begin() + begin, all.end())) << n;
    }
  EXPECT_THROW(EpochOrder(10, 42, 3).range(3, 11), Error);
}

// Version 1 must not change: checkpoints rely on it.
TEST(EpochOrder, Version1) {
  EXPECT_EQ(kShuffleVersion, 1u);
  EXPECT_EQ(order_of(EpochOrder(10, 42, 0)), (std::vector<i64>{7, 5, 1, 2, 9, 3, 4, 6, 0, 8}));
  EXPECT_EQ(EpochOrder(1'000'000'007, 7, 5).at(123456789), 810750976);
}

// Each example is equally likely at each position: chi-square over n x n cells and m orders, (n - 1)^2
// degrees of freedom, mean d, standard deviation sqrt(2 d). Chance does not reach 6 deviations; a bad network
// does.
TEST(EpochOrder, UniformPositions) {
  for (i64 n : {5, 6, 8, 13, 37}) {
    const int m = 1000 * static_cast<int>(n);
    std::vector<double> count(static_cast<std::size_t>(n * n));
    for (int e = 0; e < m; ++e) {
      const EpochOrder o(n, 1234, static_cast<u64>(e));
      for (i64 k = 0; k < n; ++k) ++count[static_cast<std::size_t>(k * n + o.at(k))];
    }
    const double expected = static_cast<double>(m) / static_cast<double>(n);
    double chi = 0;
    for (double c : count) chi += (c - expected) * (c - expected) / expected;
    const double d = static_cast<double>((n - 1) * (n - 1));
    EXPECT_LT(chi, d + 6 * std::sqrt(2 * d)) << n;
    EXPECT_GT(chi, d - 6 * std::sqrt(2 * d)) << n;
  }
}

// Neighbours are separated: of n - 1 neighbouring pairs about two stay adjacent (n - 1 times 2 / n, nearly
// Poisson), for any n.
TEST(EpochOrder, NeighboursAreSeparated) {
  double sum = 0;
  const int orders = 400;
  for (int e = 0; e < orders; ++e) {
    const auto v = order_of(EpochOrder(1000, 99, static_cast<u64>(e)));
    for (std::size_t k = 1; k < v.size(); ++k) sum += std::abs(v[k] - v[k - 1]) == 1;
  }
  // Mean 2, standard deviation of the mean over 400 orders sqrt(2 / 400) = 0.07; six deviations.
  EXPECT_NEAR(sum / orders, 2.0, 0.43);
}

TEST(StepPlan, TheLastStepIsShorterAndNoExampleIsLost) {
  const StepPlan plan(10, 4);
  EXPECT_EQ(plan.steps_per_epoch(), 3);
  i64 consumed = 0;
  for (i64 step = 0; step < 9; ++step) {
    const auto p = plan.place(step);
    EXPECT_EQ(p.epoch, step / 3);
    EXPECT_EQ(p.step_in_epoch, step % 3);
    EXPECT_EQ(p.epoch * 10 + p.begin, consumed);
    EXPECT_EQ(plan.consumed(step), consumed);
    consumed += p.end - p.begin;
  }
  EXPECT_EQ(consumed, 30);
  EXPECT_EQ(plan.place(2).end - plan.place(2).begin, 2);
  EXPECT_EQ(StepPlan(3, 100).steps_per_epoch(), 1);
  EXPECT_EQ(StepPlan(3, 100).place(0).end, 3);
}

TEST(StepPlan, BadInput) {
  EXPECT_THROW(StepPlan(0, 4), UsageError);
  EXPECT_THROW(StepPlan(4, 0), UsageError);
}

}  // namespace
}  // namespace redco

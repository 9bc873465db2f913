#include "pipeline/rewards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace redco {
namespace {

TEST(Rewards, Kinds) {
  EXPECT_EQ(verified_reward("exact_match", " 19\n", "19"), 1);
  EXPECT_EQ(verified_reward("exact_match", "190", "19"), 0);
  EXPECT_EQ(verified_reward("exact_match", "", ""), 1);
  EXPECT_EQ(verified_reward("contains", "It is 19.", " 19 "), 1);
  EXPECT_EQ(verified_reward("contains", "It is 1.", "19"), 0);
  EXPECT_EQ(verified_reward("number", "12 + 7 is 19.", "19"), 1);
  EXPECT_EQ(verified_reward("number", "-3.50", "so -3.5"), 1);
  EXPECT_EQ(verified_reward("number", "3", "-3"), 0);
  EXPECT_EQ(verified_reward("number", "none", "none"), 0);
  EXPECT_THROW(verified_reward("length", "a", "a"), BugError);
}

TEST(Rewards, AdvantagesOfAGroup) {
  EXPECT_THAT(group_advantages({1, 1, 1}, true), ::testing::ElementsAre(0, 0, 0));
  EXPECT_THAT(group_advantages({1, 0}, false), ::testing::ElementsAre(0.5, -0.5));
  const double deviation = std::sqrt(0.5) + 1e-4;  // of n - 1, as torch.std
  EXPECT_THAT(group_advantages({1, 0}, true), ::testing::ElementsAre(::testing::DoubleEq(0.5 / deviation),
                                                                     ::testing::DoubleEq(-0.5 / deviation)));
}

}  // namespace
}  // namespace redco

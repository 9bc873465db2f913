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
  for (const auto& [answer, number] :
       std::vector<std::pair<std::string, std::string>>{{"is...42", "42"},
                                                        {"..9", "9"},
                                                        {"1,234", "1234"},
                                                        {"$1,000.00", "1000"},
                                                        {"40-42", "42"},
                                                        {"1e3", "1000"},
                                                        {"2.50e-1", "0.25"},
                                                        {".5", "0.50"},
                                                        {"GPT-4", "4"},
                                                        {"-$1,234", "-1234"},
                                                        {"= -3", "-3"},
                                                        {"\xE2\x88\x92"
                                                         "3",
                                                         "-3"},
                                                        {"-0", "0"},
                                                        {"007", "7"},
                                                        {"1,2,3", "3"},
                                                        {"1,23", "23"},
                                                        {"3e4x", "4"},
                                                        {"12,345,678", "12345678"},
                                                        {"0.000", "0"},
                                                        {"42.", "42"},
                                                        {"12345678901234567890", "12345678901234567890.0"}})
    EXPECT_EQ(verified_reward("number", answer, number), 1) << answer << " " << number;
  for (const auto& [answer, number] :
       std::vector<std::pair<std::string, std::string>>{{"5,234", "1,234"},
                                                        {"..9", "..5"},
                                                        {"0.42", "42"},
                                                        {"1e3", "3"},
                                                        {"..42", "0.42"},
                                                        {"x-3", "-3"},
                                                        {"12345678901234567890", "12345678901234567891"},
                                                        {"1e999999999", "2"}})
    EXPECT_EQ(verified_reward("number", answer, number), 0) << answer << " " << number;
  EXPECT_THROW(verified_reward("length", "a", "a"), BugError);
}

TEST(Rewards, AdvantagesOfAGroup) {
  EXPECT_THAT(group_advantages({1, 1, 1}, true), ::testing::ElementsAre(0, 0, 0));
  EXPECT_THAT(group_advantages({1, 0}, false), ::testing::ElementsAre(0.5, -0.5));
  EXPECT_THAT(group_advantages(std::vector<double>(10, 0.1), true), ::testing::Each(0));  // the sum is not 1
  EXPECT_THAT(group_advantages(std::vector<double>(10, 1), true), ::testing::Each(0));
  const double deviation = std::sqrt(0.5) + 1e-4;  // of n - 1, as torch.std
  EXPECT_THAT(group_advantages({1, 0}, true), ::testing::ElementsAre(::testing::DoubleEq(0.5 / deviation),
                                                                     ::testing::DoubleEq(-0.5 / deviation)));
}

}  // namespace
}  // namespace redco

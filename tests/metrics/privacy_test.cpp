// The accountant of differential privacy against that of Opacus (scripts/make_privacy_fixtures.py).
#include "metrics/privacy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace redco {
namespace {

TEST(Privacy, EqualsOpacusOnATableOfSettings) {
  std::ifstream in(std::string(REDCO_FIXTURES) + "/privacy/epsilon.json");
  const auto table = nlohmann::json::parse(in);
  ASSERT_GE(table["rows"].size(), 200u);
  for (const auto& row : table["rows"]) {
    const SampledGaussian m{row[0], row[1]};
    const double wanted = row[4];
    // Both sum the same series in fp64; cancellation leaves differences of at most 1.6e-11 here.
    EXPECT_NEAR(privacy_epsilon(m, row[2], row[3]), wanted, 1e-8 * wanted) << row;
  }
}

TEST(Privacy, ClosedForms) {
  // All records each step: the Gaussian mechanism, order / (2 sigma^2).
  EXPECT_DOUBLE_EQ(renyi_divergence({1, 2}, 10), 10 / 8.0);
  // Order 2: A = (1 - q)^2 + 2 q (1 - q) + q^2 exp(1 / sigma^2).
  const double q = 0.3, sigma = 1.7;
  EXPECT_NEAR(renyi_divergence({q, sigma}, 2),
              std::log((1 - q) * (1 - q) + 2 * q * (1 - q) + q * q * std::exp(1 / (sigma * sigma))), 1e-14);
  // Fractional orders are continuous with the integer ones.
  for (const double order : {2.0, 5.0, 9.0})
    EXPECT_NEAR(renyi_divergence({q, sigma}, order + 1e-7), renyi_divergence({q, sigma}, order), 1e-6);
}

TEST(Privacy, EpsilonGrowsWithStepsAndFallsWithNoise) {
  EXPECT_EQ(privacy_epsilon({0.01, 1}, 0, 1e-5), 0);
  EXPECT_EQ(privacy_epsilon({0, 1}, 100, 0.5), 0);
  EXPECT_EQ(privacy_epsilon({0.01, 0}, 1, 1e-5), INFINITY);
  EXPECT_LT(privacy_epsilon({0.01, 1}, 100, 1e-5), privacy_epsilon({0.01, 1}, 200, 1e-5));
  const double noise = noise_for_epsilon(0.01, 200, 2, 1e-5);
  EXPECT_LE(privacy_epsilon({0.01, noise}, 200, 1e-5), 2);
  EXPECT_GT(privacy_epsilon({0.01, noise - 2e-4}, 200, 1e-5), 2);
}

TEST(Privacy, SettingsOutOfRangeAreErrors) {
  EXPECT_THROW(privacy_epsilon({1.1, 1}, 1, 1e-5), UsageError);
  EXPECT_THROW(privacy_epsilon({-0.1, 1}, 1, 1e-5), UsageError);
  EXPECT_THROW(privacy_epsilon({NAN, 1}, 1, 1e-5), UsageError);
  EXPECT_THROW(privacy_epsilon({0.1, -1}, 1, 1e-5), UsageError);
  EXPECT_THROW(privacy_epsilon({0.1, INFINITY}, 1, 1e-5), UsageError);
  EXPECT_THROW(privacy_epsilon({0.1, 1}, -1, 1e-5), UsageError);
  EXPECT_THROW(privacy_epsilon({0.1, 1}, 1, 0), UsageError);
  EXPECT_THROW(privacy_epsilon({0.1, 1}, 1, 1), UsageError);
  EXPECT_THROW(noise_for_epsilon(0.1, 100, 0, 1e-5), UsageError);
  EXPECT_THROW(noise_for_epsilon(1, 1000000000, 1e-6, 1e-5), UsageError);
}

}  // namespace
}  // namespace redco

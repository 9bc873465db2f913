// Mixtures of training data.
#include "pipeline/mixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "support/error_text.h"

namespace redco {
namespace {

using ::testing::HasSubstr;

// n examples whose field "from" holds the source's number and "at" the index.
std::shared_ptr<const Dataset> source(i32 number, i64 n) {
  std::vector<Example> out(static_cast<std::size_t>(n));
  for (i64 i = 0; i < n; ++i) {
    Example& e = out[static_cast<std::size_t>(i)];
    e.ids["from"] = {number};
    e.ids["at"] = {static_cast<i32>(i)};
  }
  return std::make_shared<ExampleList>(std::move(out), fmt::format("source {} of {}", number, n));
}

// (source, index) of each example of an epoch.
std::vector<std::pair<i32, i32>> examples(const Dataset& data) {
  std::vector<std::pair<i32, i32>> out;
  for (i64 i = 0; i < data.size(); ++i) {
    const Example e = data.get(i);
    out.emplace_back(e.ids.at("from")[0], e.ids.at("at")[0]);
  }
  return out;
}

TEST(Mixture, AnEpochHasTheSharesOfTheWeights) {
  const auto m = std::make_shared<Mixture>(
      std::vector<Mixture::Source>{{"a", 3, source(0, 70)}, {"b", 1, source(1, 30)}});
  EXPECT_EQ(m->size(), 100);
  EXPECT_EQ(m->share(0), 75);
  EXPECT_EQ(m->share(1), 25);
  for (i64 epoch = 0; epoch < 3; ++epoch) {
    std::map<i32, i64> count;
    for (const auto& [from, at] : examples(*m->of_epoch(m, 7, epoch))) ++count[from];
    EXPECT_EQ(count[0], 75);
    EXPECT_EQ(count[1], 25);
  }
  EXPECT_THAT(m->describe(),
              HasSubstr("100 examples per epoch: a 75.0% (1.07 passes), b 25.0% (0.83 passes)"));
}

// Over all epochs, no example is drawn again before each of its source was drawn.
TEST(Mixture, PassesContinueInTheNextEpoch) {
  for (const auto& [n, weight] : std::vector<std::pair<i64, double>>{{37, 0.2}, {5, 9}, {50, 1}}) {
    const auto m = std::make_shared<Mixture>(
        std::vector<Mixture::Source>{{"a", weight, source(0, n)}, {"b", 1, source(1, 40)}});
    std::map<i32, std::vector<i64>> drawn = {{0, std::vector<i64>(static_cast<std::size_t>(n))},
                                             {1, std::vector<i64>(40)}};
    for (i64 epoch = 0; epoch < 6; ++epoch) {
      for (const auto& [from, at] : examples(*m->of_epoch(m, 7, epoch)))
        ++drawn[from].at(static_cast<std::size_t>(at));
      for (const auto& [from, counts] : drawn)
        EXPECT_LE(
            *std::max_element(counts.begin(), counts.end()) - *std::min_element(counts.begin(), counts.end()),
            1)
            << "source " << from << " after epoch " << epoch;
    }
  }
}

TEST(Mixture, EpochsFollowFromTheSeedAndDiffer) {
  const auto m = std::make_shared<Mixture>(
      std::vector<Mixture::Source>{{"a", 1, source(0, 60)}, {"b", 1, source(1, 60)}});
  const auto of = [&](u64 seed, i64 epoch) { return examples(*m->of_epoch(m, seed, epoch)); };
  EXPECT_EQ(of(1, 2), of(1, 2));
  EXPECT_NE(of(1, 2), of(1, 3));
  EXPECT_NE(of(1, 2), of(2, 2));
  // Two sources of one size have different orders.
  const auto first = of(1, 0);
  std::vector<i32> a, b;
  for (const auto& [from, at] : first) (from == 0 ? a : b).push_back(at);
  EXPECT_NE(a, b);
}

TEST(Mixture, OrdinalsAndFingerprint) {
  const auto mixture = [](double weight, i64 n) {
    return Mixture({{"a", 1, source(0, 10)}, {"b", weight, source(1, n)}});
  };
  const Mixture m = mixture(2, 20);
  for (i64 i = 0; i < m.size(); ++i) {
    const Example e = m.get(i);
    EXPECT_EQ(e.ordinal, 10 * e.ids.at("from")[0] + e.ids.at("at")[0]);
    EXPECT_EQ(m.length(i), 1);
  }
  EXPECT_EQ(m.fingerprint(), mixture(2, 20).fingerprint());
  EXPECT_NE(m.fingerprint(), mixture(3, 20).fingerprint());
  EXPECT_NE(m.fingerprint(), mixture(2, 21).fingerprint());
  EXPECT_EQ(m.fingerprint(), m.of_epoch(nullptr, 1, 5)->fingerprint());
}

TEST(Mixture, AWeightTooSmallForOneExample) {
  EXPECT_THAT(usage_error([] {
                Mixture({{"a", 1e-6, source(0, 10)}, {"b", 1, source(1, 10)}});
              }),
              HasSubstr("the weight 1e-06 of a gives none of the 20 examples of an epoch"));
}

}  // namespace
}  // namespace redco

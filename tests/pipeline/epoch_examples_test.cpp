// Examples that an epoch made: once per epoch, the same after a restore, each pass in another order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "pipeline/rollouts.h"
#include "support/ranks.h"

namespace redco {
namespace {

using redco::testing::on_one_rank;

std::vector<Example> numbered_examples(i64 first, i64 n) {
  std::vector<Example> out(n);
  for (i64 i = 0; i < n; ++i) {
    out[i].ids["number"] = {static_cast<i32>(first + i)};
    out[i].values["half"] = {static_cast<float>(first + i) / 2};
  }
  return out;
}

std::vector<i32> numbers_of(const Dataset& data) {
  std::vector<i32> out;
  for (i64 i = 0; i < data.size(); ++i) out.push_back(data.get(i).ids.at("number")[0]);
  return out;
}

TEST(EpochExamples, AreMadeOncePerEpochAndKeptInTheState) {
  on_one_rank([](Context&) {
    EpochExamples kept, resumed;
    int made = 0;
    const auto make = [&] {
      ++made;
      return EpochExamples::Made{numbered_examples(10 * made, 7), {{"reward", 0.5 * made}}};
    };
    StepContext ctx;
    ctx.epoch = 4;
    const auto first = kept.source(ctx, "test", 3, make);
    EXPECT_EQ(numbers_of(*kept.source(ctx, "test", 3, make)), numbers_of(*first));
    EXPECT_EQ(made, 1);
    EXPECT_EQ(kept.notes(), (std::map<std::string, double>{{"reward", 0.5}}));

    resumed.restore(kept.state());
    const auto again = resumed.source(ctx, "test", 3, make);
    EXPECT_EQ(made, 1);
    EXPECT_EQ(numbers_of(*again), numbers_of(*first));
    EXPECT_EQ(again->fingerprint(), first->fingerprint());
    EXPECT_EQ(again->get(0).values, first->get(0).values);
    EXPECT_EQ(resumed.notes(), kept.notes());

    // Other examples of the same epoch are other training data.
    EpochExamples forgot;
    const auto others = forgot.source(ctx, "test", 3, make);
    EXPECT_EQ(others->size(), first->size());
    EXPECT_NE(others->fingerprint(), first->fingerprint());
    // The next epoch has other examples of the same settings.
    EXPECT_EQ(without_epoch_digest(others->fingerprint()), without_epoch_digest(first->fingerprint()));
    EXPECT_EQ(without_epoch_digest(first->fingerprint() + "/by length"), "test 7 x 3/by length");
    made = 1;

    ctx.epoch = 5;
    EXPECT_THAT(numbers_of(*resumed.source(ctx, "test", 3, make)), ::testing::Each(::testing::Ge(20)));
    EXPECT_EQ(made, 2);
  });
}

TEST(EpochExamples, EachPassHasAllOfThemInAnotherOrder) {
  on_one_rank([](Context&) {
    EpochExamples kept;
    const auto data = kept.source({}, "test", 3, [] {
      return EpochExamples::Made{numbered_examples(0, 20), {}};
    });
    EXPECT_TRUE(data->ordered());
    const std::vector<i32> all = numbers_of(*data);
    ASSERT_EQ(all.size(), 60u);
    std::set<std::vector<i32>> orders;
    for (int pass = 0; pass < 3; ++pass) {
      const std::vector<i32> of_pass(all.begin() + 20 * pass, all.begin() + 20 * (pass + 1));
      EXPECT_EQ(std::set<i32>(of_pass.begin(), of_pass.end()).size(), 20u);
      orders.insert(of_pass);
    }
    EXPECT_EQ(orders.size(), 3u);
  });
}

TEST(EpochExamples, AnEndlessSequenceVisitsAllBeforeItRepeatsOne) {
  on_one_rank([](Context&) {
    const ExampleList data(numbered_examples(0, 6), "six");
    std::vector<i32> all;
    for (i64 first = 0; first < 18; first += 4)  // calls do not end with the data
      for (const Example& e : endless_examples(data, first, std::min<i64>(4, 18 - first)))
        all.push_back(e.ids.at("number")[0]);
    ASSERT_EQ(all.size(), 18u);
    std::set<std::vector<i32>> orders;
    for (int round = 0; round < 3; ++round) {
      const std::vector<i32> one(all.begin() + 6 * round, all.begin() + 6 * (round + 1));
      EXPECT_EQ(std::set<i32>(one.begin(), one.end()).size(), 6u);
      orders.insert(one);
    }
    EXPECT_GT(orders.size(), 1u);
  });
}

}  // namespace
}  // namespace redco

// Learning rate schedules: names, pieces, and what contradicts itself.
#include "train/learning_rate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace redco {
namespace {

using ::testing::HasSubstr;

TrainSettings named(const std::string& name, std::optional<i64> warmup) {
  TrainSettings t;
  t.learning_rate = 0.5;
  t.schedule = name;
  t.warmup_steps = warmup;
  return t;
}

// transformers' get_linear_schedule_with_warmup and its siblings.
double of_transformers(const std::string& name, i64 step, i64 warmup, i64 total) {
  if (step < warmup) return 0.5 * static_cast<double>(step) / static_cast<double>(warmup);
  if (name == "constant") return 0.5;
  const double left = static_cast<double>(total - step) / static_cast<double>(total - warmup);
  if (name == "linear") return 0.5 * std::max(0.0, left);
  return 0.5 * std::max(0.0, 0.5 * (1 + std::cos(M_PI * (1 - left))));
}

TEST(LearningRate, NamedSchedulesAreThoseOfTransformers) {
  for (const std::string name : {"linear", "cosine", "constant"})
    for (const i64 warmup : {0, 1, 7}) {
      const Schedule s = schedule_of(named(name, warmup), 30);
      EXPECT_EQ(s.warmup_steps(), warmup);
      EXPECT_EQ(s.peak(), 0.5);
      for (i64 step = 0; step < 30; ++step)
        EXPECT_NEAR(s.at(step), of_transformers(name, step, warmup, 30), 1e-15) << name << " " << step;
    }
  EXPECT_EQ(schedule_of(named("linear", 0), 30).at(30), 0);
  EXPECT_EQ(schedule_of(named("cosine", 3), 30).at(31), 0);
  // A share of the steps is rounded up.
  EXPECT_EQ(schedule_of(named("linear", {}), 31).warmup_steps(), 4);
  TrainSettings none = named("linear", {});
  none.warmup_ratio = 0;
  EXPECT_EQ(schedule_of(none, 31).at(0), 0.5);
}

TEST(LearningRate, WarmupStableDecay) {
  TrainSettings t = named("wsd", 10);
  t.decay_ratio = 0.2;
  t.end_ratio = 0.1;
  const Schedule s = schedule_of(t, 100);
  EXPECT_EQ(s.at(5), 0.25);
  for (const i64 step : {10, 45, 79, 80}) EXPECT_EQ(s.at(step), 0.5) << step;
  EXPECT_NEAR(s.at(90), (0.5 + 0.05) / 2, 1e-15);
  EXPECT_NEAR(s.at(99), 0.05 + 0.45 / 20, 1e-15);
  EXPECT_EQ(s.words(),
            "0 to 0.5 until step 10 (linear), 0.5 until 80 % of the steps, to 0.05 until the end (linear)");
  t.schedule = "cosine";
  EXPECT_NEAR(schedule_of(t, 100).at(55), (0.5 + 0.05) / 2, 1e-15);
}

TEST(LearningRate, PiecesFollowEachOther) {
  TrainSettings t;
  t.learning_rate = 0.5;
  t.schedule_pieces = {{.until_step = 10, .from = 0.2, .to = 1},
                       {.shape = "constant", .until_step = 20},
                       {.shape = "exponential", .until_share = 0.505, .to = 0.01},
                       {.shape = "constant", .until_step = 60, .from = 0.4},
                       {.shape = "cosine", .until_share = 0.8, .to = 0}};
  const Schedule s = schedule_of(t, 100);
  const std::map<i64, double> rates = {{0, 0.1},  {5, 0.3},  {10, 0.5}, {19, 0.5}, {20, 0.5}, {51, 0.2},
                                       {59, 0.2}, {60, 0.2}, {70, 0.1}, {80, 0},   {100, 0}};
  for (const auto& [step, rate] : rates) EXPECT_NEAR(s.at(step), rate, 1e-15) << step;
  // The share ends at step 51, which is 50.5 rounded up.
  EXPECT_NEAR(s.at(50), 0.5 * std::pow(0.01, 30.0 / 31), 1e-15);
  EXPECT_EQ(s.words(),
            "0.1 to 0.5 until step 10 (linear), 0.5 until step 20, to 0.005 until 50.5 % of the steps "
            "(exponential), 0.2 until step 60, to 0 until 80 % of the steps (cosine)");
  // The first piece begins at 0, or is the peak if it is constant.
  t.schedule_pieces = {{.to = 1}};
  EXPECT_EQ(schedule_of(t, 10).at(0), 0);
  t.schedule_pieces = {{.shape = "constant", .until_share = 0.5}, {.shape = "constant", .from = 0.1}};
  EXPECT_EQ(schedule_of(t, 10).at(4), 0.5);
  EXPECT_EQ(schedule_of(t, 10).at(5), 0.05);
}

// A run that ends early, and pieces that end after it or before their begin.
TEST(LearningRate, PiecesMayHaveNoSteps) {
  TrainSettings t;
  t.learning_rate = 1;
  t.schedule_pieces = {{.until_step = 50, .to = 1}, {.until_share = 0.5, .to = 0.5}, {.to = 0}};
  EXPECT_EQ(schedule_of(t, 40).at(39), 39.0 / 50);
  EXPECT_EQ(schedule_of(t, 60).at(50), 0.5);
  EXPECT_EQ(schedule_of(t, 60).at(55), 0.25);
}

TEST(LearningRate, ContradictionsAreErrors) {
  const auto problem = [](std::vector<SchedulePieceSettings> pieces) -> std::string {
    TrainSettings t;
    t.schedule_pieces = std::move(pieces);
    try {
      schedule_of(t, 10);
    } catch (const UsageError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(problem({{.to = 1}}), "");
  EXPECT_THAT(problem({{.until_step = 1, .until_share = 0.5, .to = 1}}),
              HasSubstr("[train] train.schedule[0] has both until_step and until_share"));
  EXPECT_THAT(problem({{.to = 1}, {.to = 0}}), HasSubstr("train.schedule[0] has neither until_step nor"));
  EXPECT_THAT(problem({{.until_step = 5, .to = 1}, {.until_step = 5, .to = 1}}),
              HasSubstr("train.schedule[1] has until_step=5, but step 5 belongs to a piece before it"));
  EXPECT_THAT(
      problem({{.until_share = 0.5, .to = 1}, {.until_step = 5, .to = 1}, {.until_share = 0.4, .to = 1}}),
      HasSubstr("train.schedule[2] has until_share=0.4, but a piece before it ends at 0.5"));
  EXPECT_THAT(problem({{.shape = "constant", .to = 1}}),
              HasSubstr("train.schedule[0] is constant and has `to`"));
  EXPECT_THAT(problem({{.shape = "cosine"}}), HasSubstr("train.schedule[0] has no `to`"));
  EXPECT_THAT(problem({{.shape = "exponential", .to = 1}}), HasSubstr("goes from or to 0"));
  EXPECT_THAT(problem({{.shape = "exponential", .from = 1, .to = 0}}), HasSubstr("goes from or to 0"));
}

}  // namespace
}  // namespace redco

// The best checkpoint by several metrics, and early stopping.
#include "train/early_stopping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/error_text.h"

namespace redco {
namespace {

using ::testing::HasSubstr;

using Best = std::vector<std::string>;

TEST(MoreIsBetter, DirectionByName) {
  for (const char* more : {"accuracy", "eval_accuracy", "f1", "rouge2", "rougeL", "rougeLsum", "bleu", "chrf",
                           "exact_match", "reward", "pearson"})
    EXPECT_EQ(more_is_better(more), std::optional(true)) << more;
  for (const char* less : {"loss", "loss_actor", "eval_loss", "perplexity", "WER", "mse", "rmse"})
    EXPECT_EQ(more_is_better(less), std::optional(false)) << less;
  for (const char* unknown : {"", "height", "lossless", "accuracy_loss", "_"})
    EXPECT_EQ(more_is_better(unknown), std::nullopt) << unknown;
}

TEST(MetricWatch, SeveralMetrics) {
  SaveBestSettings best;
  best.max = {"rouge2", "rougeL"};
  best.min = {"loss"};
  const MetricWatch w(best, {});
  TrainState s;
  s.step = 10;
  EXPECT_EQ(w.see({{"loss", 2}, {"rouge2", 0.1}, {"rougeL", NAN}, {"x", 1}}, true, s),
            (Best{"loss", "rouge2"}));
  s.step = 20;
  // NaN is never best, and the next value is compared with the last finite best.
  EXPECT_EQ(w.see({{"loss", NAN}, {"rouge2", 0.1}, {"rougeL", 0.3}}, true, s), (Best{"rougeL"}));
  s.step = 30;
  EXPECT_EQ(w.see({{"loss", 1}, {"rouge2", 0.2}, {"rougeL", 0.2}}, true, s), (Best{"loss", "rouge2"}));
  EXPECT_EQ(s.best, (std::map<std::string, double>{{"loss", 1}, {"rouge2", 0.2}, {"rougeL", 0.3}}));
  EXPECT_EQ(s.best_step, (std::map<std::string, i64>{{"loss", 30}, {"rouge2", 30}, {"rougeL", 20}}));
  EXPECT_FALSE(w.exhausted(s));
  EXPECT_THAT(
      usage_error([&] {
        w.see({{"loss", 1}, {"rouge2", 1}}, true, s);
      }),
      HasSubstr("names 'rougeL', which this pipeline's evaluation does not have; it has loss, rouge2"));
}

// Passes values, one evaluation per 10 steps; returns the step at which patience is exhausted, 0 if never.
i64 stops_at(const MetricWatch& w, const std::vector<double>& values, TrainState& s) {
  for (const double v : values) {
    s.step += 10;
    w.see({{"loss", v}, {"accuracy", v}}, true, s);
    // The state in a checkpoint is sufficient.
    s = parse_state(to_json(s), "state");
    if (w.exhausted(s)) return s.step;
  }
  return 0;
}
TrainState fresh() {
  TrainState s;
  s.n_examples = s.global_batch_size = 1;
  return s;
}

TEST(EarlyStopping, StopsAfterPatienceEvaluationsWithoutImprovement) {
  EarlyStoppingSettings e;
  e.metric = "loss";
  e.patience = 2;
  TrainState s = fresh();
  EXPECT_EQ(stops_at(MetricWatch({}, e), {3, 2, 2, 1, 1.5, NAN}, s), 60);
  EXPECT_EQ(MetricWatch({}, e).why(s),
            "loss has not fallen for 2 evaluations; its best was 1.000 after step 40");
  // With a higher patience the run continues, and earlier evaluations count.
  e.patience = 4;
  EXPECT_FALSE(MetricWatch({}, e).exhausted(s));
  EXPECT_EQ(stops_at(MetricWatch({}, e), {2, 2}, s), 80);
  // Another metric starts over.
  e.metric = "accuracy";
  EXPECT_FALSE(MetricWatch({}, e).exhausted(s));
  EXPECT_EQ(stops_at(MetricWatch({}, e), {1, 2, 3, 4, 5, 6, 7}, s), 0);
}

TEST(EarlyStopping, MinDeltaAndMode) {
  EarlyStoppingSettings e;
  e.metric = "loss";
  e.patience = 2;
  e.min_delta = 0.5;
  TrainState s = fresh();
  EXPECT_EQ(stops_at(MetricWatch({}, e), {3, 2.6, 2.5}, s),
            30);  // an improvement of exactly 0.5 does not count
  EXPECT_THAT(MetricWatch({}, e).why(s), HasSubstr("has not fallen by more than 0.5 for 2"));
  s = fresh();
  EXPECT_EQ(stops_at(MetricWatch({}, e), {3, 2.6, 2.4, 2.0}, s), 0);
  s = fresh();
  e.mode = "max";
  EXPECT_EQ(stops_at(MetricWatch({}, e), {3, 2, 1}, s), 30);
  s = fresh();
  EXPECT_EQ(stops_at(MetricWatch({}, e), {NAN, NAN}, s), 20);
  EXPECT_THAT(MetricWatch({}, e).why(s), HasSubstr("it was never finite"));
  e = {};
  e.metric = "height";
  EXPECT_THAT(usage_error([&] { MetricWatch({}, e); }),
              HasSubstr("Set train.early_stopping.mode to max or min"));
}

// An uninterrupted run would not make the evaluation at the end of a part.
TEST(EarlyStopping, AnExtraEvaluationDoesNotCount) {
  EarlyStoppingSettings e;
  e.metric = "loss";
  e.patience = 1;
  const MetricWatch w({}, e);
  TrainState s = fresh();
  w.see({{"loss", 1}}, true, s);
  w.see({{"loss", 2}}, false, s);
  EXPECT_FALSE(w.exhausted(s));
  w.see({{"loss", 2}}, true, s);
  EXPECT_TRUE(w.exhausted(s));
}

TEST(MetricWatch, AMisspeltMetricGetsASuggestion) {
  EarlyStoppingSettings e;
  e.metric = "eval_loss";
  TrainState s;
  EXPECT_THAT(
      usage_error([&] {
        MetricWatch({}, e).check({{"loss", 1}, {"perplexity", 2}});
      }),
      HasSubstr("train.early_stopping.metric names 'eval_loss', which this pipeline's evaluation does not "
                "have; it has loss, perplexity; did you mean loss?"));
}

}  // namespace
}  // namespace redco

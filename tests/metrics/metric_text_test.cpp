#include "metrics/metric_text.h"

#include <gtest/gtest.h>

namespace redco {
namespace {

TEST(MetricText, ShowsAMetricOncePerLine) {
  EXPECT_EQ(metrics_text({}, ", "), "");
  EXPECT_EQ(metrics_text({{"loss", 2.5}, {"perplexity", 12.1825}}, ", "), "loss 2.500, perplexity 12.18");
  // More than two classes: f1 is f1_macro, and f1_micro is the accuracy.
  EXPECT_EQ(
      metrics_text(
          {{"accuracy", 0.75}, {"f1", 0.5}, {"f1_macro", 0.5}, {"f1_micro", 0.75}, {"f1_weighted", 0.5}},
          "  "),
      "accuracy 0.7500  f1 0.5000  f1_weighted 0.5000");
  // Two classes: f1 is that of class 1.
  EXPECT_EQ(metrics_text({{"f1", 0.25}, {"f1_macro", 0.5}}, ", "), "f1 0.2500, f1_macro 0.5000");
  // Summed in another order, the mean square may differ from the loss in the last bit.
  EXPECT_EQ(metrics_text({{"loss", 0.42400001}, {"mse", 0.424}}, ", "), "loss 0.4240");
  EXPECT_EQ(metrics_text({{"mse", 0.424}}, ", "), "mse 0.4240");
  // Equal by chance only.
  EXPECT_EQ(metrics_text({{"bleu", 0}, {"exact_match", 0}}, ", "), "bleu 0, exact_match 0");
}

}  // namespace
}  // namespace redco

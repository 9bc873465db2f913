#include "pipelines/preference_losses.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "autograd/grad.h"
#include "ops/create.h"
#include "ops/reduce.h"
#include "support/ranks.h"

namespace redco {
namespace {

using namespace redco::testing;

Tensor numbers_of(std::vector<double> v) {
  return from_values({static_cast<i64>(v.size())}, std::span<const double>(v));
}

// The expected numbers are those of TRL's formulas in fp64: DPOTrainer, CPOTrainer, ORPOTrainer.
TEST(PreferenceLosses, OfPairsAreThoseOfTrl) {
  const std::map<std::string, std::vector<double>> expected = {
      {"sigmoid", {0.796329966626426, 0.5013288814283017, 0.6359570477895321}},
      {"ipo", {6.084444444444445, 0.08027777777777771, 1.3611111111111114}},
      {"simpo", {1.0560901268588705, 0.6600500338125731, 0.848382155418777}},
      {"orpo", {0.523052443329604, 0.0023978410257426736, 0.1399264686640876}}};
  on_one_rank([&](Context&) {
    for (const auto& [type, losses] : expected) {
      DpoSettings o;
      o.loss_type = type;
      o.beta = 0.3;
      o.label_smoothing = type == "sigmoid" || type == "simpo" ? 0.1 : 0;
      const std::vector<double> got =
          to_values(pair_losses(o, numbers_of({-1.2, -0.05, -3}), numbers_of({-0.4, -2, -3.5})));
      for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(got[i], losses[i], 1e-12) << type << i;
    }
  });
}

TEST(PreferenceLosses, OddsOfACertainAnswerAreFinite) {
  on_one_rank([](Context&) {
    DpoSettings o;
    o.loss_type = "orpo";
    const Tensor chosen = numbers_of({0, -50}).watched(), rejected = numbers_of({-50, 0}).watched();
    const Tensor losses = pair_losses(o, chosen, rejected);
    for (const double x : to_values(losses)) EXPECT_TRUE(std::isfinite(x)) << x;
    for (const Tensor& g : grad(sum_all(losses), {chosen, rejected}))
      for (const double x : to_values(g)) EXPECT_TRUE(std::isfinite(x)) << x;
  });
}

// KTOTrainer, with desirable_weight 2 and undesirable_weight 0.5.
TEST(PreferenceLosses, OfSingleAnswersAreThoseOfTrl) {
  on_one_rank([](Context&) {
    DpoSettings o;
    o.loss_type = "kto";
    o.beta = 0.3;
    o.desirable_weight = 2;
    o.undesirable_weight = 0.5;
    const Tensor z = kl_estimate(numbers_of({0.1, -0.4, 7, 0.9}), numbers_of({1, 1, 0, 1}));
    EXPECT_NEAR(item(z), 0.2, 1e-12);
    const std::vector<double> got =
        to_values(judged_losses(o, numbers_of({-1.2, -0.05, -3}), numbers_of({1, -1, 1}), z));
    const std::vector<double> expected = {1.2069664997294525, 0.24062939206073242, 1.4462436102487797};
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(got[i], expected[i], 1e-12) << i;
    EXPECT_EQ(item(kl_estimate(numbers_of({-3, 1}), numbers_of({1, 1}))), 0);
    EXPECT_EQ(item(kl_estimate(numbers_of({5}), numbers_of({0}))), 0);
  });
}

}  // namespace
}  // namespace redco

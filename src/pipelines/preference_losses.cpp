#include "pipelines/preference_losses.h"

#include <limits>

#include "base/error.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/select.h"
#include "pipeline/token_rows.h"

namespace redco {

namespace {

// log(p / (1 - p)) of a log-probability. Below 0 by 1e-6 at least, so that the odds are finite.
Tensor log_odds(const Tensor& log_p) {
  const Tensor x = clamp(log_p, -std::numeric_limits<double>::infinity(), -1e-6);
  return x - log(1.0 - exp(x));
}

// -log sigmoid(x) of pairs that are labelled the wrong way round with this probability.
Tensor smoothed(const Tensor& x, double wrong) {
  return (wrong - 1) * log_sigmoid(x) - wrong * log_sigmoid(-x);
}

}  // namespace

Tensor pair_losses(const DpoSettings& o, const Tensor& chosen, const Tensor& rejected) {
  if (o.loss_type == "orpo") return -o.beta * log_sigmoid(log_odds(chosen) - log_odds(rejected));
  const Tensor h = chosen - rejected;
  if (o.loss_type == "ipo") return square(add_scalar(h, -0.5 / o.beta));
  if (o.loss_type == "simpo") return smoothed(add_scalar(o.beta * h, -o.simpo_gamma), o.label_smoothing);
  REDCO_CHECK(o.loss_type == "sigmoid", "no loss of pairs is called '{}'", o.loss_type);
  return smoothed(o.beta * h, o.label_smoothing);
}

Tensor judged_losses(const DpoSettings& o, const Tensor& ratio, const Tensor& sign, const Tensor& z) {
  const Tensor good = 0.5 * (sign + 1.0);
  const Tensor weight = o.desirable_weight * good + o.undesirable_weight * (1.0 - good);
  return weight * sigmoid(-o.beta * sign * (ratio - z));
}

Tensor kl_estimate(const Tensor& ratios, const Tensor& counts) {
  const Tensor zero = full({}, 0, ratios.dtype()), one = full({}, 1, ratios.dtype());
  const Tensor mean = sum(ratios * counts, {0}, true) / maximum(sum(counts, {0}, true), one);
  return stop_gradient(maximum(mean, zero));
}

}  // namespace redco

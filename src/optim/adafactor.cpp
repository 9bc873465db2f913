#include "optim/adafactor.h"

#include <cmath>

#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/redistribute.h"
#include "ops/reduce.h"

namespace redco {

namespace {

Tensor root_mean_square(const Tensor& x) {
  return sqrt(scale(without_partials(sum_all(square(x))), 1 / static_cast<double>(x.numel())));
}

class AdafactorRule : public UpdateRule {
 public:
  explicit AdafactorRule(const AdafactorSettings& settings) : settings_(settings) {}
  bool on_shards() const override { return true; }

  std::vector<StateSpec> state_of(const ParamSpec& spec) const override {
    if (spec.shape.size() < 2) return {{"exp_avg_sq", spec.shape}};
    Shape rows = spec.shape, columns = spec.shape;
    rows.back() = 1;
    columns[columns.size() - 2] = 1;
    return {{"exp_avg_sq_row", rows}, {"exp_avg_sq_col", columns}};
  }

  Update update(const Tensor& p, const Tensor& g, const Tensors& state,
                const UpdateContext& c) const override {
    const double fresh = std::pow(static_cast<double>(c.updates), settings_.decay_rate);
    const auto average = [&](const Tensor& old, const Tensor& now) {
      return scale(old, 1 - fresh) + scale(without_partials(now), fresh);
    };
    const Tensor squares = add_scalar(square(g), settings_.epsilon1);
    Tensors now;
    Tensor u = g;
    if (p.rank() < 2) {
      now = {average(state[0], squares)};
      u = u * rsqrt(now[0]);
    } else {
      now = {average(state[0], mean(squares, {-1}, true)), average(state[1], mean(squares, {-2}, true))};
      const Tensor of_rows = without_partials(mean(now[0], {-2}, true));
      u = u * rsqrt(now[0] / of_rows) * rsqrt(now[1]);
    }
    Tensor rate = full({}, c.learning_rate);
    if (settings_.scale_parameter) rate = rate * maximum(root_mean_square(p), full({}, settings_.epsilon2));
    const Tensor clip = maximum(scale(root_mean_square(u), 1 / settings_.clip_threshold), full({}, 1));
    return {p - p * scale(rate, c.weight_decay) - u * (rate / clip), now};
  }

 private:
  AdafactorSettings settings_;
};

}  // namespace

RuleSettings adafactor_rule(const AdafactorSettings& s) {
  return {.name = "adafactor",
          .origin = "",
          .rule = std::make_shared<AdafactorRule>(s),
          .weight_decay = s.weight_decay,
          .decay_norms_and_biases = s.decay_norms_and_biases};
}

}  // namespace redco

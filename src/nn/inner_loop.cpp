#include "nn/inner_loop.h"

#include "autograd/grad.h"
#include "base/error.h"
#include "ops/create.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "ops/linear.h"
#include "ops/shape.h"

namespace redco {

namespace {

// The module whose weight dense() applies; "" for other parameters.
std::string dense_module(const ParamSpec& s) {
  constexpr std::string_view kEnd = ".weight";
  if (s.kind != ParamKind::linear || s.shape.size() != 2 || !s.adapter.weight.empty()) return "";
  if (!s.name.ends_with(kEnd) || s.name.ends_with("lm_head.weight")) return "";
  return s.name.substr(0, s.name.size() - kEnd.size());
}

// [tasks, rows, width]
Tensor as_rows(const Tensor& t) { return t.visible() == 2 ? t : reshape(t, {-1, t.size(-1)}); }

i64 rows_of(const std::vector<Tensor>& steps) {
  i64 n = 0;
  for (const Tensor& t : steps) n += t.size(0);
  return n;
}

}  // namespace

FastWeights::FastWeights(const ModelParams& params, const ParamTree& shared, i64 tasks, Order order)
    : params_(&params), shared_(shared), tasks_(tasks), order_(order) {
  for (size_t i = 0; i < shared.size(); ++i) {
    Weight& w = weights_.emplace_back();
    w.value = shared.values()[i];
    const ParamSpec& s = shared.specs()[i];
    const std::string module = dense_module(s);
    w.factors = s.trained() && !module.empty() && !shared.has(module + ".lora_A.weight");
  }
}

Tensor FastWeights::own(const Tensor& shared) const {
  Shape one = shared.shape(), all = shared.shape();
  one.insert(one.begin(), 1);
  all.insert(all.begin(), tasks_);
  return broadcast_to(reshape_all(shared, one, 0), all, batch_layout()).with_hidden(1);
}

// A tree with these values and with the steps on linear layers as adapters.
ParamTree FastWeights::tree(const std::vector<Tensor>& values) const {
  std::vector<ParamSpec> specs = shared_.specs();
  std::vector<Tensor> all = values;
  for (size_t i = 0; i < weights_.size(); ++i) {
    const Weight& w = weights_[i];
    if (w.x.empty()) continue;
    const std::string module = dense_module(specs[i]);
    const auto add = [&](const std::string& name, int dim, const Tensor& value) {
      specs.push_back({.name = module + name, .kind = ParamKind::linear});
      specs.back().adapter = {.weight = shared_.specs()[i].name, .dim = dim, .scale = -1, .dropout = 0};
      all.push_back(value);
    };
    add(".lora_A.weight", 1, concat(w.x, 0));
    add(".lora_B.weight", 0, transpose(concat(w.g, 0), 0, 1));
  }
  ParamTree t(std::move(specs), params_->aliases);
  t.values() = std::move(all);
  return t;
}

ParamTree FastWeights::params() const {
  std::vector<Tensor> values;
  for (const Weight& w : weights_) values.push_back(w.value);
  return tree(values);
}

void FastWeights::step_by_factors(Weight& w, const std::vector<RowFactors>& steps,
                                  double learning_rate) const {
  const bool constant = order_ != Order::second;
  for (const RowFactors& f : steps) {
    REDCO_CHECK(f.x.hidden() == 1, "[fast weights] a layer was applied to {}, which lacks the dim of tasks",
                describe(f.x));
    w.x.push_back(as_rows(constant ? f.x.detached() : f.x));
    w.g.push_back(scale(as_rows(constant ? f.g.detached() : f.g), learning_rate));
  }
  // Cost of one row: in + out, both in the forward product and in the backward. The weight itself is read and
  // written several times.
  constexpr i64 kShare = 4;
  if (rows_of(w.x) * (w.value.size(0) + w.value.size(1)) * kShare <= w.value.numel()) return;
  w.value = own(w.value) - matmul(concat(w.g, 0), concat(w.x, 0), true, false);
  w.factors = w.shared = false;
  w.x.clear();
  w.g.clear();
}

void FastWeights::descend(const std::function<Tensor(const ParamTree&)>& loss, double learning_rate) {
  // Also in predictions, because they adapt.
  Restore<bool> recording(Context::current().recording, true);
  std::vector<Tensor> values, wanted;
  std::vector<size_t> index;
  std::vector<bool> by_factors;
  for (size_t i = 0; i < weights_.size(); ++i) {
    Weight& w = weights_[i];
    values.push_back(w.value);
    if (!shared_.specs()[i].trained()) continue;
    if (w.shared && !w.factors) {
      w.value = own(w.value);
      w.shared = false;
    }
    // A separate node for this step, so that paths through it belong to this step only.
    values.back() = w.value.node() && order_ != Order::none ? alias(w.value) : w.value.watched();
    wanted.push_back(values.back());
    by_factors.push_back(w.factors);
    index.push_back(i);
  }
  const FactoredGradients g =
      factored_grad(loss(tree(values)), wanted, by_factors, {.create_graph = order_ == Order::second});
  for (size_t k = 0; k < index.size(); ++k) {
    Weight& w = weights_[index[k]];
    if (w.factors) {
      REDCO_CHECK(!g.whole[k].defined(), "[fast weights] {} is used by an op that is not a linear layer",
                  shared_.specs()[index[k]].name);
      step_by_factors(w, g.factors[k], learning_rate);
    } else {
      const Tensor step = order_ == Order::second ? g.whole[k] : g.whole[k].detached();
      w.value = w.value - scale(step, learning_rate);
    }
    if (order_ == Order::none) w.value = w.value.detached();
  }
}

}  // namespace redco

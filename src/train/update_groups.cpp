#include "train/update_groups.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <ranges>
#include <utility>

#include "base/error.h"
#include "base/words.h"
#include "ops/redistribute.h"
#include "optim/clip.h"

namespace redco {

std::vector<Tensor> UpdateGroups::Group::of(const ParamTree& params) const {
  std::vector<Tensor> out;
  out.reserve(members.size());
  for (size_t i : members) out.push_back(params.values()[i]);
  return out;
}

namespace {

// UsageError: a model that is trained as a whole has quantized weights.
void refuse_quantized(const ParamTree& params, DType weights) {
  for (const ParamSpec& s : params.specs()) {
    const DType type = ParamStorage{.weights = weights}.type_of(s);
    if (!is_grouped(type) || !s.trained() || s.owner == kExtra ||
        std::ranges::any_of(params.specs(),
                            [&](const ParamSpec& o) { return o.owner == s.owner && o.frozen; }))
      continue;
    const std::string section = s.owner.empty() ? "model" : "models." + s.owner;
    if (type == weights)
      throw UsageError(
          "[model] {0}.weight_dtype is int8 or int4, but all weights are trained. Weights of these types are "
          "quantized when they are loaded. Set train.lora to train adapters, or {0}.weight_dtype=bf16",
          section);
    throw UsageError(
        "[model] {0}.path: {1} is quantized ({2}), but all weights are trained. Set train.lora to train "
        "adapters, or {0}.weight_dtype=fp32 to train all weights in fp32; `redco convert FILE.gguf --to hf "
        "--output FOLDER` makes a folder of such weights",
        section, s.name, name_of(type));
  }
}

}  // namespace

UpdateGroups::UpdateGroups(Pipeline& pipeline, ParamTree& params, const StepOptions& options)
    : pipeline_(pipeline),
      params_(params),
      sharding_(options.sharding),
      clip_grad_norm_(options.clip_grad_norm),
      masters_(params, options.weights, options.sharding) {
  refuse_quantized(params, options.weights);
  make_groups(pipeline);
  check_averages();
  make_optimizers(options);
}

void UpdateGroups::make_groups(const Pipeline& pipeline) {
  const ParamTree& params = params_;
  std::vector<std::string> owner(params.size());
  bool descends = false;
  for (const ParamGroup& spec : pipeline.checked_groups()) {
    Group g{spec, {}, std::vector<bool>(params.size(), false)};
    for (size_t i = 0; i < params.size(); ++i)
      if (params.specs()[i].trained() && spec.has(params.specs()[i].name)) {
        if (!owner[i].empty())
          throw UsageError(
              "[pipeline] {} is in two parameter groups, '{}' and '{}'; expected one. A group without `has` "
              "selects all parameters",
              params.specs()[i].name, owner[i], spec.name);
        owner[i] = spec.name;
        g.members.push_back(i);
        g.selected[i] = true;
      }
    if (g.members.empty())
      throw UsageError(
          "[pipeline] the parameter group '{}' has no parameters: its `has` selects none of {}", spec.name,
          excerpt(fmt::format("{}", fmt::join(std::views::transform(params.specs(), &ParamSpec::name), ", ")),
                  200));
    descends = descends || !spec.ema_of;
    groups_.push_back(std::move(g));
  }
  if (!descends)
    throw UsageError(
        "[pipeline] groups() has only moving averages; expected a group without ema_of, which minimizes a loss "
        "term");
}

void UpdateGroups::check_averages() const {
  const ParamTree& params = params_;
  for (const Group& g : groups_) {
    if (!g.spec.ema_of) continue;
    for (size_t i : g.members) {
      const ParamSpec& target = params.specs()[i];
      const std::string source = g.spec.ema_of(target.name);
      if (!params.has(source))
        throw UsageError("[pipeline] {} follows '{}', which is not a parameter", target.name, source);
      if (source == target.name || g.spec.has(source))
        throw UsageError(
            "[pipeline] {} follows {}, which is in the same group '{}'. ema_of() must name a trained "
            "parameter of another group",
            target.name, source, g.spec.name);
      if (params[source].shape() != target.shape)
        throw UsageError(
            "[pipeline] {} {} follows {} {}; expected the same shape. Change ema_of() of the group, or a shape",
            target.name, to_string(target.shape), source, to_string(params[source].shape()));
    }
  }
}

// Parameters in no group have the state of the job's optimizer too. Moving averages need none.
void UpdateGroups::make_optimizers(const StepOptions& options) {
  const ParamTree masters = masters_.of(params_);
  std::vector<bool> rest(params_.size(), true);
  for (const Group& g : groups_)
    if (g.spec.optimizer || g.spec.ema_of)
      for (size_t i : g.members) rest[i] = false;
  optimizers_.push_back(make_optimizer(options.optimizer, masters, sharding_, rest));
  for (Group& g : groups_) {
    g.optimizer = optimizers_[0].get();
    if (!g.spec.optimizer || g.spec.ema_of) continue;
    optimizers_.push_back(make_optimizer(*g.spec.optimizer, masters, sharding_, g.selected));
    g.optimizer = optimizers_.back().get();
  }
}

std::string UpdateGroups::optimizer_name() const {
  std::string name = optimizers_[0]->name();
  for (const Group& g : groups_)
    if (g.optimizer != optimizers_[0].get()) name += ", " + g.spec.name + ": " + g.optimizer->name();
  return name;
}

std::vector<Optimizer::State> UpdateGroups::state() const {
  std::vector<std::string> names;
  std::map<std::string, std::vector<ParamTree>> trees;
  for (const auto& optimizer : optimizers_)
    for (const Optimizer::State& s : optimizer->state()) {
      if (!trees.contains(s.name)) names.push_back(s.name);
      trees[s.name].push_back(s.tree);
    }
  std::vector<Optimizer::State> out;
  for (const std::string& name : names) out.push_back({name, ParamTree::join(trees[name])});
  return out;
}

void UpdateGroups::start_averages() {
  for (const Group& g : groups_)
    if (g.spec.ema_of) follow(g, 1);
}

std::map<std::string, i64> UpdateGroups::group_updates() const {
  std::map<std::string, i64> out;
  for (const Group& g : groups_)
    if (!g.spec.ema_of) out[g.spec.name] = g.updates;
  return out;
}

void UpdateGroups::set_updates(i64 updates, const std::map<std::string, i64>& of_groups) {
  const auto mine = group_updates();
  for (const auto& [name, n] : of_groups)
    if (!mine.count(name))
      throw ContentsError(
          "[checkpoint] the checkpoint has a parameter group '{}', but this pipeline does not", name);
  updates_ = updates;
  for (Group& g : groups_) {
    if (g.spec.ema_of) continue;
    const auto it = of_groups.find(g.spec.name);
    if (it == of_groups.end())
      throw ContentsError("[checkpoint] the checkpoint lacks the parameter group '{}' of this pipeline",
                          g.spec.name);
    g.updates = it->second;
    for (size_t i : g.members) g.optimizer->updates()[i] = g.updates;
  }
}

namespace {

double tau_of(const ParamGroup& group, i64 step) {
  if (!group.tau_of) return group.tau;
  const double tau = group.tau_of(step);
  if (!(tau >= 0 && tau <= 1))
    throw UsageError("[pipeline] parameter group '{}' has tau={} in step {}; expected 0 to 1", group.name,
                     tau, step + 1);
  return tau;
}

}  // namespace

// p = tau * source + (1 - tau) * p.
void UpdateGroups::follow(const Group& g, double tau) {
  NoGrad off;
  Scope scope("average");
  const ParamTree masters = masters_.of(params_);
  std::vector<Tensor> sources;  // they own the memory until the call is submitted
  Views from, to;
  for (size_t i : g.members) {
    const Tensor& p = masters.values()[i];
    sources.push_back(redistribute(masters[g.spec.ema_of(masters.specs()[i].name)].detached(), p.layout()));
    from.push_back(sources.back());
    to.push_back(p);
  }
  Context::current().run(&Kernels::average, tau, from, to);
  masters_.round(params_, g.selected);
}

void UpdateGroups::take_new_values(const StepContext& ctx) {
  const NoGrad off;
  const Scope scope("after update");
  const ParamTree masters = masters_.of(params_);
  in_pipeline(pipeline_, "after_update()", [&] {
    std::vector<bool> changed(masters.size(), false);
    const std::map<std::string, Tensor> values = pipeline_.after_update(masters, ctx);
    std::vector<std::pair<size_t, const Tensor*>> places;  // all are checked before anything is sent
    for (const auto& [name, value] : values) {
      const ParamSpec* const spec = masters.find_spec(name);
      REDCO_CHECK(spec && (spec->trained() || spec->buffer),
                  "it returned a value of '{}', which is neither a trained parameter nor a buffer", name);
      const auto i = static_cast<size_t>(spec - masters.specs().data());
      const Tensor& p = masters.values()[i];
      REDCO_CHECK(value.defined() && value.shape() == p.shape() && value.dtype() == p.dtype(),
                  "the value of {} is {}; expected {}", name, value.defined() ? describe(value) : "undefined",
                  describe(p));
      places.emplace_back(i, &value);
    }
    for (const auto& [i, value] : places) {
      const Tensor& p = masters.values()[i];
      Context::current().run(&Kernels::copy, redistribute(value->detached(), p.layout()), p);
      changed[i] = true;
    }
    if (!values.empty()) masters_.round(params_, changed);
  });
}

std::vector<double> UpdateGroups::norms(const std::vector<Tensor>& grads) const {
  std::vector<double> out(groups_.size() + 1);
  std::vector<Tensor> together = grads;
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (!groups_[g].spec.clip_grad_norm) continue;
    std::vector<Tensor> own;
    for (size_t i : groups_[g].members) own.push_back(std::exchange(together[i], {}));
    out[g + 1] = gradient_norm(own);
  }
  out[0] = gradient_norm(together);
  return out;
}

void UpdateGroups::update(const std::vector<Tensor>& grads, const std::vector<double>& norms,
                          const StepContext& ctx, double learning_rate) {
  const i64 step = ctx.step;
  ++updates_;
  ParamTree masters = masters_.of(params_);
  for (size_t i = 0; i < groups_.size(); ++i) {
    Group& g = groups_[i];
    if (!g.descends(step)) continue;
    ++g.updates;
    const double factor = g.spec.clip_grad_norm ? clip_factor(g.spec.clip_grad_norm, norms[i + 1])
                                                : clip_factor(clip_grad_norm_, norms[0]);
    const double rate = g.spec.learning_rate ? g.spec.learning_rate(step, learning_rate) : learning_rate;
    if (!std::isfinite(rate))
      throw UsageError("[pipeline] the parameter group '{}' has the learning rate {} in step {}", g.spec.name,
                       rate, step + 1);
    g.optimizer->update(masters, grads, rate * g.spec.learning_rate_factor, factor, g.selected);
    masters_.round(params_, g.selected);
  }
  take_new_values(ctx);
  for (const Group& g : groups_)
    if (g.spec.ema_of && g.due(step)) follow(g, tau_of(g.spec, step));
}

}  // namespace redco

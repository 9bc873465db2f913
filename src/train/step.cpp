#include "train/step.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "autograd/grad.h"
#include "base/error.h"
#include "base/hash.h"
#include "comm/group.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/redistribute.h"
#include "optim/gradients.h"
#include "pipeline/bad_ids.h"
#include "tensor/profile.h"
#include "tensor/transfer.h"
#include "train/step_embeddings.h"

namespace redco {

std::vector<MicroBatch> micro_batches(i64 rows, i64 per_device, int dp) {
  std::vector<MicroBatch> out;
  const i64 each = per_device * dp;
  for (i64 first = 0; first < rows; first += each) out.push_back({first, std::min(each, rows - first)});
  return out;
}

TrainStep::TrainStep(Pipeline& pipeline, ParamTree& params, const StepOptions& options)
    : pipeline_(pipeline),
      params_(params),
      options_(options),
      masters_(params, options.weights, options.sharding) {
  if (is_grouped(options.weights) &&
      std::ranges::none_of(params.specs(), [](const ParamSpec& s) { return s.owner.empty() && s.frozen; }))
    throw UsageError(
        "[model] model.weight_dtype is int8 or int4, but all weights are trained. Weights of these types are "
        "quantized when they are loaded. Set train.lora to train adapters, or model.weight_dtype=bf16");
  make_groups();
  make_optimizers();
}

void TrainStep::make_groups() {
  const ParamTree& params = params_;
  std::vector<std::string> owner(params.size());
  bool descends = false;
  for (const ParamGroup& spec : pipeline_.checked_groups()) {
    Group g{spec, {}, std::vector<bool>(params.size(), false)};
    for (size_t i = 0; i < params.size(); ++i)
      if (params.specs()[i].trained() && spec.has(params.specs()[i].name)) {
        if (!owner[i].empty())
          throw UsageError("[pipeline] {} is in two parameter groups, '{}' and '{}'", params.specs()[i].name,
                           owner[i], spec.name);
        owner[i] = spec.name;
        g.members.push_back(i);
        g.selected[i] = true;
      }
    if (g.members.empty())
      throw UsageError("[pipeline] the parameter group '{}' has no parameters", spec.name);
    descends = descends || !spec.ema_of;
    groups_.push_back(std::move(g));
  }
  if (!descends) throw UsageError("[pipeline] no parameter group minimizes a loss term");
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
        throw UsageError("[pipeline] {} {} can't follow {} {}", target.name, to_string(target.shape), source,
                         to_string(params[source].shape()));
    }
  }
}

// Parameters in no group have the state of the job's optimizer too. Moving averages need none.
void TrainStep::make_optimizers() {
  const ParamTree masters = masters_.of(params_);
  std::vector<bool> rest(params_.size(), true);
  for (const Group& g : groups_)
    if (g.spec.optimizer || g.spec.ema_of)
      for (size_t i : g.members) rest[i] = false;
  optimizers_.push_back(make_optimizer(options_.optimizer, masters, options_.sharding, rest));
  for (Group& g : groups_) {
    g.optimizer = optimizers_[0].get();
    if (!g.spec.optimizer || g.spec.ema_of) continue;
    optimizers_.push_back(make_optimizer(*g.spec.optimizer, masters, options_.sharding, g.selected));
    g.optimizer = optimizers_.back().get();
  }
}

std::string TrainStep::optimizer_name() const {
  std::string name = optimizers_[0]->name();
  for (const Group& g : groups_)
    if (g.optimizer != optimizers_[0].get()) name += ", " + g.spec.name + ": " + g.optimizer->name();
  return name;
}

std::vector<Optimizer::State> TrainStep::state() const {
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

void TrainStep::start_averages() {
  for (const Group& g : groups_)
    if (g.spec.ema_of) follow(g, 1);
}

std::map<std::string, i64> TrainStep::group_updates() const {
  std::map<std::string, i64> out;
  for (const Group& g : groups_)
    if (!g.spec.ema_of) out[g.spec.name] = g.updates;
  return out;
}

void TrainStep::set_updates(i64 updates, const std::map<std::string, i64>& of_groups) {
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

// p = tau * source + (1 - tau) * p.
void TrainStep::follow(const Group& g, double tau) {
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

namespace {

// A rank's part of a sum over all ranks that is 0 if n ranks have the same bits: the first of them adds n - 1
// times their hash, each of the n - 1 others subtracts that of its own.
double part_of_difference(u64 bits, i64 n, bool first) {
  const auto hash = static_cast<double>((bits ^ (bits >> 32)) * 0x9E3779B97F4A7C15u >> 32);
  return first ? static_cast<double>(n - 1) * hash : -hash;
}

// Sums each term's weight over the replicas, whose collate() must name the same terms.
std::map<std::string, double> global_weights(const Pipeline& pipeline, const std::vector<Batch>& batches) {
  std::map<std::string, double> sums;
  for (const Batch& b : batches)
    for (const auto& [name, w] : b.weights) {
      in_pipeline(pipeline, "collate()", [&] {
        REDCO_CHECK(std::isfinite(w) && w >= 0,
                    "the weight of the term '{}' is {}; expected 0 or a positive number", name, w);
      });
      sums[name] += w;
    }
  Context& c = Context::current();
  if (c.mesh().dp() > 1) {
    std::string names;
    std::vector<double> flat = {0};
    for (const auto& [name, w] : sums) {
      names += " " + name;
      flat.push_back(w);
    }
    if (!c.is_meta()) flat[0] = part_of_difference(hash64(names), c.mesh().dp(), c.coord().dp() == 0);
    const Restore<const char*> phase(c.phase, "step");
    const Scope scope("weights");
    c.account(Collective::all_reduce, Axis::dp, static_cast<i64>(flat.size() * sizeof(double)));
    c.group(Axis::dp).all_reduce<double>(flat.data(), static_cast<i64>(flat.size()));
    if (flat[0] != 0)
      in_pipeline(pipeline, "collate()", [&] {
        REDCO_CHECK(false, "it returned weights of other terms on other replicas:{}",
                    fmt::join(c.group(Axis::dp).gather(names), " and"));
      });
    size_t i = 1;
    for (auto& [name, w] : sums) w = flat[i++];
  }
  return sums;
}

// This rank's value of one element.
double item_here(const Tensor& t) {
  return visit_float(t.dtype() == DType::f64 ? DType::f64 : DType::f32, [&](auto value) {
    copy_to_host(t, 0, std::span(&value, 1));
    return static_cast<double>(value);
  });
}

// This rank's share of a sum: 0 on ranks that hold a copy, so that the sum over all ranks counts the value
// once.
double share(const Tensor& t) {
  if (t.is_meta() || !t.is_first_copy()) return 0;
  return t.local_numel() == 0 ? 0 : item_here(t);
}

// Terms must be sums, floating and of one element.
void check_terms(const LossTerms& terms, const Pipeline& pipeline) {
  in_pipeline(pipeline, "loss()", [&] {
    std::set<std::string> names;
    for (const LossTerm& t : terms) {
      REDCO_CHECK(names.insert(t.name).second, "it returned two terms of the name '{}'", t.name);
      REDCO_CHECK(t.sum.defined(), "the term '{}' has no value", t.name);
      REDCO_CHECK(t.sum.numel() == 1 && t.sum.is_float(),
                  "the term '{}' is {}; expected a number of one element. sum_all() adds up a tensor", t.name,
                  describe(t.sum));
    }
  });
}

// The mean of a term over the step: its sum in this micro-batch, divided by the weight of all.
Tensor mean_of(const std::string& name, const LossTerms& terms, const std::map<std::string, double>& weights,
               const std::string& group) {
  const auto term = std::ranges::find(terms, name, &LossTerm::name);
  if (term == terms.end())
    throw UsageError("[pipeline] loss() returned no term '{}', which the parameter group '{}' minimizes",
                     name, group);
  const auto w = weights.find(name);
  if (w == weights.end()) throw UsageError("[pipeline] collate() returned no weight for the term '{}'", name);
  return scale(term->sum, w->second > 0 ? 1 / w->second : 0);
}

// Every term has a weight. (Terms of evaluations only have weights in training too.)
void check_weights(const std::map<std::string, double>& weights, const std::map<std::string, double>& terms) {
  for (const auto& [name, sum] : terms)
    if (!weights.contains(name))
      throw UsageError("[pipeline] collate() returned no weight for the term '{}'", name);
}

// Some gradient must have a path to its parameter.
void check_reached(const Pipeline& pipeline, const std::vector<Tensor>& grads, size_t unreached) {
  const auto wanted = static_cast<size_t>(std::ranges::count_if(grads, &Tensor::defined));
  in_pipeline(pipeline, "loss()", [&] {
    REDCO_CHECK(wanted == 0 || unreached < wanted,
                "no term depends on a trained parameter, so all gradients would be 0. stop_gradient(), "
                "detached(), to_values() and from_values() end the path to the parameters; ops without "
                "derivative do too");
  });
}

// Ranks that hold copies of a term must have the same bits.
double copies_differ(const LossTerm& t) {
  const Context& c = Context::current();
  i64 copies = 1;
  for (Axis a : c.mesh().axes())
    if (t.sum.layout()[a].is_replicated()) copies *= c.mesh().size(a);
  if (copies == 1 || t.sum.is_meta() || t.sum.local_numel() == 0) return 0;
  return part_of_difference(std::bit_cast<u64>(item_here(t.sum)), copies, t.sum.is_first_copy());
}

// The ranks of a replica must have used the same constants in their ops.
double constants_differ() {
  const Context& c = Context::current();
  if (c.is_meta()) return 0;
  const i64 ranks = c.mesh().ranks() / c.mesh().dp();
  bool first = true;
  for (Axis a : c.mesh().axes())
    if (a != Axis::dp && c.coord().at(a) > 0) first = false;
  return part_of_difference(c.constants(), ranks, first);
}

// Collective.
[[noreturn]] void report_difference(const Pipeline& pipeline, const LossTerms& terms,
                                    const std::string& when) {
  Context& c = Context::current();
  std::string mine;
  for (const LossTerm& t : terms) mine += fmt::format(" {} {:.9g}", t.name, item_here(t.sum));
  const std::vector<std::string> all = c.world().gather(mine);
  std::string values;
  for (size_t r = 0; r < all.size() && r < 8; ++r)
    values += fmt::format("{}rank {}:{}", r == 0 ? "" : "; ", r, all[r]);
  c.world().together([&] {
    if (pipeline.origin.empty())
      throw Error(
          ExitCode::rank_failed,
          fmt::format("[train] {}: ranks of one replica computed differently (values of the loss: {}). "
                      "Check the hosts' memory and libraries (`redco env`)",
                      when, values));
    throw UsageError(
        "[pipeline] {}: loss() computed differently on ranks of one replica: another value of a term ({}), or "
        "another constant in an op such as scale(). It must not depend on the rank, nor on what only one rank "
        "knows: use StepContext::agree() for values of one rank. The pipeline is {}",
        when, values, pipeline.origin);
  });
  throw BugError("not reached");
}

}  // namespace

// First the norm of all groups that are clipped together, then that of each group (0: it has no norm of its
// own).
std::vector<double> TrainStep::group_norms(const std::vector<Tensor>& grads) const {
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

std::vector<Tensor> TrainStep::of_members(const Group& group, const ParamTree& params) {
  std::vector<Tensor> out;
  out.reserve(group.members.size());
  for (size_t i : group.members) out.push_back(params.values()[i]);
  return out;
}

namespace {

// The gradients of the embeddings with respect to the term of a group.
struct GroupGradients {
  size_t group;
  std::vector<Tensor> gradients;  // in the order of StepEmbeddings::leaves()
};

}  // namespace

StepOutcome TrainStep::run(const std::vector<Batch>& batches, const std::vector<i64>& row_offsets, i64 step,
                           i64 epoch, double learning_rate, bool signal) {
  Context& c = Context::current();
  const auto weights = global_weights(pipeline_, batches);
  std::map<std::string, double> sums;  // this rank's share
  GradientBuckets buckets(params_, options_.sharding);
  std::string first_term = groups_[0].spec.term;
  double difference = 0;  // this rank's part, see part_of_difference()
  LossTerms last_terms;   // of the last micro-batch
  KeyUses key_uses;       // of the first micro-batch
  c.begin_constants();

  c.random.step = step;
  const bool gathers = options_.sharding == StateSharding::parameters;
  const Restore<GatherAhead*> ahead(c.gather_ahead, gathers ? &gather_ahead_ : nullptr);
  gather_ahead_.begin();
  StepContext ctx;
  ctx.apply.train = true;
  ctx.apply.recompute_blocks = options_.recompute_blocks;
  ctx.apply.sequence_parallel = options_.sequence_parallel;
  ctx.step = step;
  ctx.epoch = epoch;
  // A loss of embeddings is one of all micro-batches, of which it leaves some to be repeated.
  const EmbeddingPipeline* const embedding = embedding_pipeline(pipeline_);
  std::optional<StepEmbeddings> embedded;
  std::vector<GroupGradients> of_embeddings;
  const size_t n_losses = embedding ? 1 : batches.size();
  for (size_t m = 0; m < n_losses; ++m) {
    c.phase = "forward";
    const ParamTree params = params_.watched();
    LossTerms terms = [&] {
      const ProfilePhase profiled("forward");
      const Restore<KeyUses*> uses(c.key_uses, updates_ == 0 && m == 0 ? &key_uses : nullptr);
      if (embedding) embedded.emplace(*embedding, params, batches, row_offsets, ctx);
      const Restore<i64> first_row(c.random.row_offset, embedding ? 0 : row_offsets[m]);
      const Batch& batch = embedding ? embedded->all() : batches[m];
      return in_pipeline(pipeline_, "loss()", [&] { return pipeline_.loss(params, batch, ctx); });
    }();
    if (terms.empty()) throw UsageError("[pipeline] loss() returned no term");
    check_terms(terms, pipeline_);
    if (first_term.empty()) first_term = terms[0].name;
    for (const LossTerm& t : terms) {
      sums[t.name] += share(t.sum);
      difference += copies_differ(t);
      if (m + 1 == n_losses) last_terms.push_back({t.name, t.sum.detached()});
    }

    const ProfilePhase profiled("backward");
    const std::vector<Tensor> leaves = embedded ? embedded->leaves() : std::vector<Tensor>();
    buckets.begin(params, m + 1 == n_losses && leaves.empty());
    for (size_t g = 0; g < groups_.size(); ++g) {
      const Group& group = groups_[g];
      if (group.spec.ema_of || !group.due(step)) continue;
      std::vector<Tensor> means = {
          mean_of(group.spec.term.empty() ? first_term : group.spec.term, terms, weights, group.spec.name)};
      for (const auto& [name, factor] : group.spec.plus)
        means.push_back(scale(mean_of(name, terms, weights, group.spec.name), factor));
      const Tensor mean = means.size() == 1 ? means[0] : add(means);
      std::vector<Tensor> inputs = of_members(group, params);
      inputs.insert(inputs.end(), leaves.begin(), leaves.end());
      LeafGradients sink(buckets, leaves);
      grad(mean, inputs, {.retain = g + 1 < groups_.size(), .sink = &sink});
      if (!leaves.empty()) of_embeddings.push_back({g, sink.take()});
    }
  }
  if (updates_ == 0) check_weights(weights, sums);
  if (embedded) embedded->release();
  for (size_t m = 0; !of_embeddings.empty() && m < embedded->repeated(); ++m) {
    c.phase = "forward";
    const ParamTree params = params_.watched();
    const std::vector<Tensor> outputs = [&] {
      const ProfilePhase profiled("forward");
      return embedded->repeat(m, params, ctx);
    }();
    const ProfilePhase profiled("backward");
    buckets.begin(params, m + 1 == embedded->repeated());
    for (GroupGradients& of : of_embeddings) {
      std::vector<Tensor> cotangents;
      for (size_t i = 0; i < outputs.size(); ++i)
        cotangents.push_back(std::exchange(of.gradients[m * outputs.size() + i], {}));
      vjp(outputs, cotangents, of_members(groups_[of.group], params),
          {.retain = &of != &of_embeddings.back(), .sink = &buckets});
    }
  }

  gather_ahead_.end();
  c.phase = "step";
  const std::vector<Tensor> grads = [&] {
    const ProfilePhase profiled("reduce gradients");
    return buckets.finish();
  }();
  const ProfilePhase profiled("norm and update");
  StepOutcome out;
  if (updates_ == 0) {
    out.unreached = buckets.unreached();
    check_reached(pipeline_, grads, out.unreached.size());
    out.repeated_key = key_uses.repeated;
  }
  out.weights = weights;
  const std::vector<double> norms = group_norms(grads);
  out.grad_norm = std::sqrt(std::inner_product(norms.begin(), norms.end(), norms.begin(), 0.0));

  difference += constants_differ();

  // One vote, which also carries the loss sums: after backward and norm, before the update.
  const std::optional<BadId> bad_id = c.queue().take_bad_id();
  std::vector<double> ballot = {signal ? 1.0 : 0.0, std::isfinite(out.grad_norm) ? 0.0 : 1.0, difference,
                                bad_id ? 1.0 : 0.0};
  for (const auto& [name, s] : sums) ballot.push_back(s);
  for (const auto& [name, s] : sums)
    if (!std::isfinite(s)) ballot[1] = 1;
  if (c.world().size() > 1) {
    const Scope scope("vote");
    c.account_all(Collective::all_reduce, static_cast<i64>(ballot.size() * sizeof(double)));
    c.world().all_reduce<double>(ballot.data(), static_cast<i64>(ballot.size()));
  }
  if (ballot[3] != 0) report_bad_id(pipeline_, fmt::format("step {}", step + 1), bad_id);
  out.signal = ballot[0] > 0;
  out.finite = ballot[1] == 0;
  if (ballot[2] != 0 && out.finite)
    report_difference(pipeline_, last_terms, fmt::format("step {}", step + 1));
  size_t at = 4;
  for (const auto& [name, s] : sums) {
    const auto w = weights.find(name);
    const double weight = w == weights.end() ? 0 : w->second;
    out.terms[name] = std::isnan(ballot[at]) ? NAN : weight > 0 ? ballot[at] / weight : 0;
    if (name == first_term) {
      out.loss = out.terms[name];
      out.weight = weight;
    }
    ++at;
  }
  if (!out.finite && !c.is_meta()) return out;
  if (options_.on_gradients) options_.on_gradients(grads);

  const auto clip = [](std::optional<double> most, double norm) {
    return most && norm > *most ? *most / (norm + 1e-6) : 1;  // torch.nn.utils.clip_grad_norm_
  };
  ++updates_;
  ParamTree masters = masters_.of(params_);
  for (size_t i = 0; i < groups_.size(); ++i) {
    Group& g = groups_[i];
    if (g.spec.ema_of || !g.due(step)) continue;
    ++g.updates;
    const double factor = g.spec.clip_grad_norm ? clip(g.spec.clip_grad_norm, norms[i + 1])
                                                : clip(options_.clip_grad_norm, norms[0]);
    const double rate = g.spec.learning_rate ? g.spec.learning_rate(step, learning_rate) : learning_rate;
    if (!std::isfinite(rate))
      throw UsageError("[pipeline] the parameter group '{}' has the learning rate {} in step {}", g.spec.name,
                       rate, step + 1);
    g.optimizer->update(masters, grads, rate * g.spec.learning_rate_factor, factor, g.selected);
    masters_.round(params_, g.selected);
  }
  for (const Group& g : groups_)
    if (g.spec.ema_of && g.due(step)) follow(g, g.spec.tau);
  return out;
}

std::map<std::string, double> mean_terms(Pipeline& pipeline, const ParamTree& params,
                                         const std::function<bool(Batch*)>& next) {
  Context& c = Context::current();
  c.phase = "evaluation";
  std::map<std::string, std::pair<double, double>> sums;  // this rank's share of sum and weight
  double difference = 0;                                  // this rank's part, see part_of_difference()
  LossTerms terms;
  Batch batch;
  c.begin_constants();
  while (next(&batch)) {
    StepContext ctx;
    terms = in_pipeline(pipeline, "loss()", [&] { return pipeline.loss(params, batch, ctx); });
    check_terms(terms, pipeline);
    for (const LossTerm& t : terms) {
      sums[t.name].first += share(t.sum);
      difference += copies_differ(t);
      if (c.coord().mp() == 0)
        sums[t.name].second += batch.weights.count(t.name) ? batch.weights.at(t.name) : 0;
    }
  }
  const std::optional<BadId> bad_id = c.queue().take_bad_id();
  std::vector<double> flat = {difference + constants_differ(), bad_id ? 1.0 : 0.0};
  for (const auto& [name, s] : sums) {
    flat.push_back(s.first);
    flat.push_back(s.second);
  }
  if (c.world().size() > 1) c.world().all_reduce<double>(flat.data(), static_cast<i64>(flat.size()));
  if (flat[1] != 0) report_bad_id(pipeline, "evaluation", bad_id);
  if (flat[0] != 0) report_difference(pipeline, terms, "evaluation");
  std::map<std::string, double> means;
  size_t i = 2;
  for (const auto& [name, s] : sums) {
    means[name] = flat[i + 1] > 0 ? flat[i] / flat[i + 1] : 0;
    i += 2;
  }
  return means;
}

}  // namespace redco

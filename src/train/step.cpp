#include "train/step.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "autograd/grad.h"
#include "base/error.h"
#include "comm/group.h"
#include "ops/elementwise.h"
#include "optim/gradients.h"
#include "pipeline/bad_ids.h"
#include "tensor/profile.h"
#include "train/step_checks.h"
#include "train/step_embeddings.h"

namespace redco {

namespace {

constexpr i64 kStepsPerFieldCheck = 100;  // a hash of the batch costs little, but is a message more

// The gradients of the embeddings with respect to the term of a group.
struct GroupGradients {
  size_t group;
  std::vector<Tensor> gradients;  // in the order of StepEmbeddings::leaves()
};

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

}  // namespace

// What a step has so far.
struct TrainStep::Pass {
  const std::vector<Batch>& batches;
  const std::vector<i64>& row_offsets;
  std::map<std::string, double> weights;  // of the terms, over all ranks
  GradientBuckets buckets;
  StepContext ctx{};
  std::string first_term{};
  std::map<std::string, double> sums{};  // of the terms: this rank's share
  double difference = 0;                 // this rank's part, see step_checks.h
  LossTerms last_terms{};                // of the last micro-batch
  KeyUses key_uses{};                    // of the first micro-batch
  // A loss of embeddings is one of all micro-batches, of which it leaves some to be repeated.
  const EmbeddingPipeline* embedding = nullptr;
  std::optional<StepEmbeddings> embedded{};
  std::vector<GroupGradients> of_embeddings{};

  size_t n_losses() const { return embedding ? 1 : batches.size(); }
};

TrainStep::TrainStep(Pipeline& pipeline, ParamTree& params, const StepOptions& options)
    : pipeline_(pipeline), params_(params), options_(options), groups_(pipeline, params, options) {}

StepOutcome TrainStep::run(const std::vector<Batch>& batches, const std::vector<i64>& row_offsets, i64 step,
                           i64 epoch, double learning_rate, bool signal, bool save_due) {
  Context& c = Context::current();
  Pass pass{.batches = batches,
            .row_offsets = row_offsets,
            .weights = global_weights(pipeline_, batches),
            .buckets = GradientBuckets(params_, options_.sharding),
            .first_term = groups_.all()[0].spec.term,
            .embedding = embedding_pipeline(pipeline_)};
  pass.ctx.apply.train = true;
  pass.ctx.apply.recompute_blocks = options_.recompute_blocks;
  pass.ctx.apply.sequence_parallel = options_.sequence_parallel;
  pass.ctx.step = step;
  pass.ctx.epoch = epoch;
  pass.ctx.total_steps = total_steps_;
  pass.ctx.sums = std::make_shared<std::map<std::string, Tensor>>();
  c.begin_constants();
  c.random.step = step;
  const bool gathers = options_.sharding == StateSharding::parameters;
  const Restore<GatherAhead*> ahead(c.gather_ahead, gathers ? &gather_ahead_ : nullptr);
  gather_ahead_.begin();
  if (is_first() || step % kStepsPerFieldCheck == 0) check_fields(pipeline_, batches, step);
  for (size_t m = 0; m < pass.n_losses(); ++m) run_micro_batch(pass, m);
  if (is_first()) check_weights(pass.weights, pass.sums);
  repeat_embeddings(pass);
  gather_ahead_.end();

  c.phase = "step";
  const std::vector<Tensor> grads = [&] {
    const ProfilePhase profiled("reduce gradients");
    return pass.buckets.finish();
  }();
  const ProfilePhase profiled("norm and update");
  StepOutcome out;
  if (is_first()) check_first(pass, grads, out);
  out.weights = pass.weights;
  const std::vector<double> norms = groups_.norms(grads);
  out.grad_norm = std::sqrt(std::inner_product(norms.begin(), norms.end(), norms.begin(), 0.0));
  pass.difference += constants_differ();
  vote(pass, signal, save_due, out);
  if (!out.finite && !c.is_meta()) return out;
  if (options_.on_gradients) options_.on_gradients(grads);
  if (options_.updates) groups_.update(grads, norms, pass.ctx, learning_rate);
  return out;
}

void TrainStep::run_micro_batch(Pass& pass, size_t m) {
  const bool last = m + 1 == pass.n_losses();
  Context::current().phase = "forward";
  const ParamTree params = params_.watched();
  const LossTerms terms = forward(pass, m, params);
  if (pass.first_term.empty()) pass.first_term = terms[0].name;
  count(pass, terms, last);
  backward(pass, last, params, terms);
}

LossTerms TrainStep::forward(Pass& pass, size_t m, const ParamTree& params) {
  Context& c = Context::current();
  LossTerms terms = [&] {
    const ProfilePhase profiled("forward");
    const Restore<KeyUses*> uses(c.key_uses, is_first() && m == 0 ? &pass.key_uses : nullptr);
    if (pass.embedding)
      pass.embedded.emplace(*pass.embedding, params, pass.batches, pass.row_offsets, pass.ctx);
    const Restore<i64> first_row(c.random.row_offset, pass.embedding ? 0 : pass.row_offsets[m]);
    const Batch& batch = pass.embedding ? pass.embedded->all() : pass.batches[m];
    return in_pipeline(pipeline_, "loss()", [&] { return pipeline_.loss(params, batch, pass.ctx); });
  }();
  if (terms.empty()) throw UsageError("[pipeline] loss() returned no term");
  check_terms(terms, pipeline_);
  return terms;
}

void TrainStep::count(Pass& pass, const LossTerms& terms, bool last) const {
  for (const LossTerm& t : terms) {
    pass.sums[t.name] += share(t.sum);
    pass.difference += copies_differ(t);
    if (last) pass.last_terms.push_back({t.name, t.sum.detached()});
  }
}

void TrainStep::backward(Pass& pass, bool last, const ParamTree& params, const LossTerms& terms) {
  const ProfilePhase profiled("backward");
  const std::vector<Tensor> leaves = pass.embedded ? pass.embedded->leaves() : std::vector<Tensor>();
  pass.buckets.begin(params, last && leaves.empty());
  const auto& groups = groups_.all();
  for (size_t g = 0; g < groups.size(); ++g) {
    const UpdateGroups::Group& group = groups[g];
    if (!group.descends(pass.ctx.step)) continue;
    std::vector<Tensor> means = {mean_of(group.spec.term.empty() ? pass.first_term : group.spec.term, terms,
                                         pass.weights, group.spec.name)};
    for (const auto& [name, factor] : group.spec.plus)
      means.push_back(scale(mean_of(name, terms, pass.weights, group.spec.name), factor));
    const Tensor mean = means.size() == 1 ? means[0] : add(means);
    std::vector<Tensor> inputs = group.of(params);
    inputs.insert(inputs.end(), leaves.begin(), leaves.end());
    LeafGradients sink(pass.buckets, leaves);
    grad(mean, inputs, {.retain = g + 1 < groups.size(), .sink = &sink});
    if (!leaves.empty()) pass.of_embeddings.push_back({g, sink.take()});
  }
}

// The gradients through the embeddings of all micro-batches but the last, whose tape is gone.
void TrainStep::repeat_embeddings(Pass& pass) {
  if (pass.embedded) pass.embedded->release();
  auto& all = pass.of_embeddings;
  StepContext again = pass.ctx;
  again.sums = nullptr;  // they are counted already
  for (size_t m = 0; !all.empty() && m < pass.embedded->repeated(); ++m) {
    Context::current().phase = "forward";
    const ParamTree params = params_.watched();
    const std::vector<Tensor> outputs = [&] {
      const ProfilePhase profiled("forward");
      return pass.embedded->repeat(m, params, again);
    }();
    const ProfilePhase profiled("backward");
    pass.buckets.begin(params, m + 1 == pass.embedded->repeated());
    for (GroupGradients& of : all) {
      std::vector<Tensor> cotangents;
      for (size_t i = 0; i < outputs.size(); ++i)
        cotangents.push_back(std::exchange(of.gradients[m * outputs.size() + i], {}));
      vjp(outputs, cotangents, groups_.all()[of.group].of(params),
          {.retain = &of != &all.back(), .sink = &pass.buckets});
    }
  }
}

void TrainStep::check_first(const Pass& pass, const std::vector<Tensor>& grads, StepOutcome& out) const {
  out.unreached = pass.buckets.unreached();
  check_reached(pipeline_, grads, out.unreached.size());
  out.repeated_key = pass.key_uses.repeated;
}

// One all-reduce for all that the ranks must know together, after backward pass and norm, and before the
// update: the sums of the terms, signals, and what is wrong on a rank. Throws what is wrong. REQUIRES:
// out.grad_norm.
void TrainStep::vote(const Pass& pass, bool signal, bool save_due, StepOutcome& out) const {
  Context& c = Context::current();
  const std::string when = fmt::format("step {}", pass.ctx.step + 1);
  const std::optional<BadId> bad_id = c.queue().take_bad_id();
  std::vector<double> ballot = {signal     ? 1.0
                                : save_due ? 0.5
                                           : 0.0,
                                std::isfinite(out.grad_norm) ? 0.0 : 1.0, pass.difference,
                                bad_id ? 1.0 : 0.0};
  for (const auto& [name, s] : pass.sums) ballot.push_back(s);
  for (const auto& [name, s] : pass.sums)
    if (!std::isfinite(s)) ballot[1] = 1;
  if (c.world().size() > 1) {
    const Scope scope("vote");
    c.account_all(Collective::all_reduce, static_cast<i64>(ballot.size() * sizeof(double)));
    c.world().all_reduce<double>(ballot.data(), static_cast<i64>(ballot.size()));
  }
  if (ballot[3] != 0) report_bad_id(pipeline_, when, bad_id);
  out.signal = ballot[0] > 0.5;
  out.save_due = ballot[0] > 0;
  out.finite = ballot[1] == 0;
  if (ballot[2] != 0 && out.finite) report_difference(pipeline_, pass.last_terms, when);
  size_t at = 4;
  for (const auto& [name, s] : pass.sums) {
    const auto w = pass.weights.find(name);
    const double weight = w == pass.weights.end() ? 0 : w->second;
    out.terms[name] = std::isnan(ballot[at]) ? NAN : weight > 0 ? ballot[at] / weight : 0;
    if (name == pass.first_term) {
      out.first_term = name;
      out.loss = out.terms[name];
      out.weight = weight;
    }
    ++at;
  }
}

}  // namespace redco

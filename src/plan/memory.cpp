#include "plan/memory.h"

#include <algorithm>

#include "base/error.h"
#include "comm/hosts.h"

namespace redco {

namespace {

// Staging memory of the groups: pieces in flight, to or from the other ranks.
i64 staging_bytes(const std::vector<LedgerLine>& collectives, const Mesh& mesh) {
  i64 sum = 0;
  for (const Axis a : mesh.axes()) {
    const i64 n = mesh.size(a);
    i64 most = 0;
    const i64 limit = pieces_in_flight(n) * piece_bytes(n);
    for (const LedgerLine& l : collectives)
      if (l.what.ends_with(std::string(" ") + mesh.name(a))) most = std::max(most, std::min(limit, l.most));
    sum += most * (n - 1) / n;
  }
  return sum;
}

}  // namespace

const ShardedSpecs& CandidateMemory::specs(int mp) {
  auto it = specs_.find(mp);
  if (it == specs_.end())
    it = specs_
             .emplace(mp, shard_specs(request_.pipeline->all_params().specs, mp, request_.rules,
                                      request_.step.weights))
             .first;
  return it->second;
}

i64 CandidateMemory::n_parameters() {
  if (n_parameters_ < 0) {
    n_parameters_ = 0;
    const ModelParams all = request_.pipeline->all_params();
    for (const ParamSpec& s : all.specs) n_parameters_ += numel(s.shape);
  }
  return n_parameters_;
}

i64 CandidateMemory::n_trained() {
  if (n_trained_ < 0) {
    n_trained_ = 0;
    const ModelParams all = request_.pipeline->all_params();
    for (const ParamGroup& g : request_.pipeline->checked_groups())
      for (const ParamSpec& s : all.specs)
        if (!g.ema_of && s.trained() && g.has(s.name)) n_trained_ += numel(s.shape);
  }
  return n_trained_;
}

const LeastBytes& CandidateMemory::least_bytes() {
  if (least_bytes_) return *least_bytes_;
  least_bytes_.emplace();
  const std::vector<ParamGroup> groups = request_.pipeline->checked_groups();
  for (const ParamSpec& s : request_.pipeline->params().specs) {
    const auto bytes = static_cast<double>(size_of(DType::f32) * numel(s.shape));
    const DType stored = s.trained() ? trained_type(s, request_.step.weights)
                                     : ParamStorage{.weights = request_.step.weights}.type_of(s);
    least_bytes_->parameters += static_cast<double>(bytes_of(stored, stored_numel(stored, s.shape)));
    if (!s.trained()) continue;
    const OptimizerSettings* optimizer = &request_.step.optimizer;
    bool averaged = false;
    for (const ParamGroup& g : groups) {
      if (!g.has(s.name)) continue;
      averaged = averaged || g.ema_of;
      if (g.ema_of) continue;
      least_bytes_->gradients += bytes;
      if (g.optimizer) optimizer = &*g.optimizer;
    }
    least_bytes_->state += bytes * ((averaged ? 0 : states_of(*optimizer)) + (stored == DType::f32 ? 0 : 1));
  }
  return *least_bytes_;
}

bool CandidateMemory::may_fit(const PlanSetting& s) {
  // Parameters, gradients and optimizer state; the fullest rank has at least the mean.
  const LeastBytes& least = least_bytes();
  const auto share = [&](StateSharding from) { return s.sharding >= from ? 1.0 / s.mesh.dp() : 1.0; };
  const double bytes = least.parameters * share(StateSharding::parameters) +
                       least.gradients * share(StateSharding::optimizer) +
                       least.state * share(StateSharding::optimizer);
  return bytes / s.mesh.mp() <= static_cast<double>(request_.machines.tightest(s.mesh.ranks()).of_rank());
}

TraceRequest CandidateMemory::trace_request(const PlanSetting& s, int rank) {
  TraceRequest t{.pipeline = request_.pipeline,
                 .mesh = s.mesh,
                 .rank = rank,
                 .layouts = specs(s.mesh.mp()).layouts,
                 .global_batch = s.global_batch,
                 .per_device = s.per_device,
                 .length = request_.length,
                 .target_length = request_.target_length,
                 .step = request_.step,
                 .checkpoint = request_.checkpoint,
                 .compute = request_.compute};
  for (int r = 0; request_.buddy && s.mesh.ranks() > 1 && r < s.mesh.ranks(); ++r)
    t.buddy_hosts.push_back(request_.machines.host_of(r));
  const i64 answers = request_.pipeline->planned_rollouts().answers;
  const i64 together = request_.answer_batch.value_or(s.per_device);
  t.rollout_rows = std::min(together, ceil_div(answers, s.mesh.dp()));
  if (const auto& g = request_.evaluation) {
    const Model& model = *request_.pipeline->model;
    const bool pair = model.is_encoder_decoder(), texts = model.task() != ModelTask::image_captioning;
    PlannedAnswers& a = t.evaluation;
    a.rows = together * g->num_beams;
    a.encoded = pair && texts ? request_.length : 0;
    a.length = std::min((pair ? 1 : request_.length) + g->max_new_tokens, model.length_limit());
    a.prompt = pair ? 1 : std::max<i64>(1, std::min(request_.length, a.length - 1));
    a.cache = g->cache_dtype;
  }
  t.step.recompute_blocks = s.recompute;
  t.step.sharding = s.sharding;
  return t;
}

PlanCandidate CandidateMemory::of(const PlanSetting& s, int rank, Trace* out) {
  TraceRequest t = trace_request(s, rank);
  if (out && request_.model) {
    t.model = request_.model.get();
    t.machines = &request_.machines;
  }
  Trace trace = trace_step(t);
  PlanCandidate c{.setting = s,
                  .memory = {},
                  .limit = request_.machines.tightest(s.mesh.ranks()).of_rank(),
                  .crosses = false};
  RankMemory& m = c.memory;
  m.parameters = trace.parameters;
  m.gradients = trace.gradients;
  m.optimizer = trace.optimizer;
  m.activations = trace.high_water - m.parameters - m.gradients - m.optimizer;
  m.rollouts = std::max<i64>(0, trace.answers_high_water - trace.high_water);
  m.buffers = staging_bytes(trace.collectives, s.mesh);
  m.checkpoint = trace.checkpoint;
  m.buddy = trace.buddy;
  m.base = base_memory(s.mesh.ranks());
  const Crossing x = crossing(request_.machines, s.mesh, Axis::mp);
  c.crosses = x.crosses;
  double bytes = 0;
  for (const LedgerLine& l : trace.collectives) {
    if (!l.what.ends_with(" mp")) continue;
    const double share = l.what.starts_with("all_reduce")       ? x.all_reduce
                         : l.what.starts_with("all_gather")     ? x.all_gather
                         : l.what.starts_with("reduce_scatter") ? x.reduce_scatter
                                                                : x.exchange;
    bytes += share * static_cast<double>(l.bytes);
  }
  c.crossing_bytes = static_cast<i64>(bytes);
  if (out) *out = std::move(trace);
  return c;
}

}  // namespace redco

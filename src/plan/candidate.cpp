#include "plan/candidate.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "plan/base_memory.h"
#include "shard/param_name.h"

namespace redco {

namespace {

constexpr i64 kStaging = i64{16} << 20;  // the most staging memory of a group (comm/group.h)

// Staging memory of the groups: slices of one message from the other ranks.
i64 staging_bytes(const std::vector<LedgerLine>& collectives, const Mesh& mesh) {
  i64 sum = 0;
  for (const Axis a : mesh.axes()) {
    const i64 n = mesh.size(a);
    i64 most = 0;
    for (const LedgerLine& l : collectives)
      if (l.count > 0 && l.what.ends_with(std::string(" ") + mesh.name(a)) &&
          !l.what.starts_with("all_gather"))
        most = std::max(most, std::min(kStaging, l.bytes / l.count));
    sum += most * (n - 1) / n;
  }
  return sum;
}

}  // namespace

const ShardedSpecs& Weigher::specs(int mp) {
  auto it = specs_.find(mp);
  if (it == specs_.end())
    it = specs_.emplace(mp, shard_specs(request_.pipeline->params().specs, mp, request_.rules)).first;
  return it->second;
}

i64 Weigher::n_parameters() {
  if (n_parameters_ < 0) {
    n_parameters_ = 0;
    for (const ParamSpec& s : request_.pipeline->params().specs) n_parameters_ += numel(s.shape);
  }
  return n_parameters_;
}

i64 Weigher::n_trained() {
  if (n_trained_ < 0) {
    n_trained_ = 0;
    for (const ParamGroup& g : request_.pipeline->groups())
      for (const ParamSpec& s : request_.pipeline->params().specs)
        if (!g.ema_of && s.trained() && g.has(s.name)) n_trained_ += numel(s.shape);
  }
  return n_trained_;
}

i64 Weigher::n_with_state() {
  i64 n = 0;
  for (const ParamSpec& s : request_.pipeline->params().specs)
    if (s.trained()) n += numel(s.shape);
  return n;
}

bool Weigher::may_fit(const PlanSetting& s) {
  // fp32 parameters, gradients and optimizer state; the fullest rank has at least the mean.
  const double dp = s.mesh.dp(), n = static_cast<double>(n_parameters()),
               trained = static_cast<double>(n_trained()),
               state = static_cast<double>(request_.step.states() * n_with_state());
  double bytes = 4 * n + 4 * trained + 4 * state;
  if (s.sharding == StateSharding::optimizer) bytes = 4 * n + 4 * trained + 4 * state / dp;
  if (s.sharding == StateSharding::parameters) bytes /= dp;
  return bytes / s.mesh.mp() <= static_cast<double>(request_.machines.tightest(s.mesh.ranks()).of_rank());
}

TraceRequest Weigher::trace_request(const PlanSetting& s, int rank) {
  TraceRequest t{.pipeline = request_.pipeline,
                 .mesh = s.mesh,
                 .rank = rank,
                 .layouts = specs(s.mesh.mp()).layouts,
                 .global_batch = s.global_batch,
                 .per_device = s.per_device,
                 .length = request_.length,
                 .target_length = request_.target_length,
                 .step = request_.step,
                 .compute = request_.compute};
  t.step.recompute_blocks = s.recompute;
  return t;
}

i64 Weigher::sharded_bytes(const PlanSetting& s, int rank, bool trained_only) {
  const auto& params = request_.pipeline->params().specs;
  const Coord c = coord_of(s.mesh, rank);
  i64 bytes = 0;
  for (size_t i = 0; i < params.size(); ++i) {
    if (trained_only && !params[i].trained()) continue;
    Layout l = specs(s.mesh.mp()).layouts[i];
    if (!params[i].shape.empty()) l[Axis::dp] = Placement::sharded(0, 1);
    bytes += numel(local_shape(params[i].shape, l, s.mesh, c)) * size_of(DType::f32);
  }
  return bytes;
}

i64 Weigher::largest_block(const PlanSetting& s, int rank, i64* blocks) {
  const auto& params = request_.pipeline->params().specs;
  const Coord c = coord_of(s.mesh, rank);
  std::unordered_map<std::string, i64> bytes;
  for (size_t i = 0; i < params.size(); ++i) {
    const ParamName name = parse_param_name(params[i].name);
    std::string block = params[i].name;
    for (size_t n = 0; n < name.comps.size(); ++n)
      if (is_numbered(name.comps[n])) {
        block = name.prefix(n + 1);
        break;
      }
    bytes[block] +=
        numel(local_shape(params[i].shape, specs(s.mesh.mp()).layouts[i], s.mesh, c)) * size_of(DType::f32);
  }
  i64 most = 0;
  for (const auto& [block, b] : bytes) most = std::max(most, b);
  *blocks = static_cast<i64>(bytes.size());
  return most;
}

void Weigher::shard_state(const PlanSetting& s, int rank, RankMemory& m, Trace& trace) {
  const i64 mine = sharded_bytes(s, rank, false), trained = sharded_bytes(s, rank, true),
            whole = m.parameters;
  i64 blocks = 0;
  const i64 block = largest_block(s, rank, &blocks);
  m.optimizer = request_.step.states() * trained;
  const auto micro = ceil_div(s.global_batch, s.per_device * s.mesh.dp());
  if (s.sharding == StateSharding::optimizer) {
    // Updated rows are gathered in place, block by block.
    m.buffers += std::min(kStaging, block);
  } else {
    m.parameters = mine;
    m.gradients = trained;
    m.activations = trace_activations(trace_request(s, rank));
    m.buffers += 2 * block;  // the block's parameters, and its gradients before the reduce-scatter
  }
  if (s.mesh.dp() == 1) return;
  // The all-reduce of a bucket becomes a reduce-scatter; parameters are gathered before use.
  for (LedgerLine& l : trace.collectives)
    if (l.what == "all_reduce dp" && l.where == "step/gradients") {
      l.what = "reduce_scatter dp";
      if (s.sharding == StateSharding::parameters) {
        l.where = "backward/parameters";
        l.count = blocks * micro;
        l.bytes *= micro;
      }
    }
  if (s.sharding == StateSharding::optimizer) {
    trace.collectives.push_back({"all_gather dp", "step/parameters", blocks, 0, whole});
  } else {
    trace.collectives.push_back({"all_gather dp", "forward/parameters", blocks * micro, 0, whole * micro});
    trace.collectives.push_back({"all_gather dp", "backward/parameters", blocks * micro, 0, whole * micro});
  }
}

PlanCandidate Weigher::weigh(const PlanSetting& s, int rank, Trace* out) {
  Trace trace = trace_step(trace_request(s, rank));
  PlanCandidate c{.setting = s,
                  .memory = {},
                  .limit = request_.machines.tightest(s.mesh.ranks()).of_rank(),
                  .crosses = false};
  RankMemory& m = c.memory;
  m.parameters = trace.parameters;
  m.gradients = trace.gradients;
  m.optimizer = trace.optimizer;
  m.activations = trace.high_water - m.parameters - m.gradients - m.optimizer;
  m.buffers = staging_bytes(trace.collectives, s.mesh);
  m.base = base_memory(s.mesh.ranks());
  if (s.sharding != StateSharding::none) shard_state(s, rank, m, trace);
  const Crossing x = crossing(request_.machines, s.mesh, Axis::mp);
  c.crosses = x.crosses;
  double bytes = 0;
  for (const LedgerLine& l : trace.collectives) {
    if (!l.what.ends_with(" mp")) continue;
    const double share = l.what.starts_with("all_reduce")   ? x.all_reduce
                         : l.what.starts_with("all_gather") ? x.all_gather
                                                            : x.exchange;
    bytes += share * static_cast<double>(l.bytes);
  }
  c.crossing_bytes = static_cast<i64>(bytes);
  if (out) *out = std::move(trace);
  return c;
}

}  // namespace redco

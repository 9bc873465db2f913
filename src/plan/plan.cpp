#include "plan/plan.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/error.h"
#include "base/words.h"
#include "plan/search.h"
#include "shard/mesh_of.h"
#include "shard/state_dim.h"

namespace redco {

namespace {

// "all_reduce mp" -> kind and axis.
PlanCollective collective_of(const LedgerLine& l) {
  const size_t space = l.what.find(' ');
  return {.kind = l.what.substr(0, space),
          .axis = space == std::string::npos ? "" : l.what.substr(space + 1),
          .where = l.where,
          .count = l.count,
          .bytes = l.bytes};
}

// The collectives that `with` has in addition to `without`, as text.
std::vector<std::string> more(const std::vector<LedgerLine>& with, const std::vector<LedgerLine>& without) {
  std::map<std::pair<std::string, std::string>, const LedgerLine*> base;
  for (const LedgerLine& l : without) base[{l.what, l.where}] = &l;
  std::vector<std::string> out;
  for (const LedgerLine& l : with) {
    i64 count = l.count, bytes = l.bytes;
    if (const auto it = base.find({l.what, l.where}); it != base.end()) {
      count -= it->second->count;
      bytes -= it->second->bytes;
    }
    if (count <= 0 && bytes <= 0) continue;
    out.push_back(fmt::format("{} more {} in {} ({})", std::max<i64>(0, count), l.what, l.where,
                              human_bytes(static_cast<u64>(std::max<i64>(0, bytes)))));
  }
  return out;
}

// The collectives that custom rules add to those of the standard rules, one sentence per rule.
std::vector<std::string> cost_of_rules(const PlanRequest& r, const PlanSetting& s, const Trace& all) {
  if (r.rules.empty() || s.mesh.mp() == 1) return {};
  auto collectives_with = [&](std::vector<CustomRule> rules) {
    PlanRequest q = r;
    q.rules = std::move(rules);
    CandidateMemory memory(q);
    return trace_step(memory.trace_request(s, 0)).collectives;
  };
  const auto standard = collectives_with({});
  std::vector<std::string> out;
  if (more(all.collectives, standard).empty()) return out;
  for (const CustomRule& rule : r.rules) {
    const auto extra = more(r.rules.size() == 1 ? all.collectives : collectives_with({rule}), standard);
    if (!extra.empty())
      out.push_back(fmt::format("the rule '{}' {} adds collectives to those of the standard rules: {}",
                                excerpt(rule.match), format_spec(rule.spec), fmt::join(extra, ", ")));
  }
  if (out.empty())
    out.push_back(fmt::format("the custom rules together add collectives to those of the standard rules: {}",
                              fmt::join(more(all.collectives, standard), ", ")));
  return out;
}

// "ranks 6 and 7", "rank 3", "ranks 5 to 7".
std::string ranks_from(i64 first, i64 n) {
  if (first == n - 1) return fmt::format("rank {}", first);
  return fmt::format("ranks {} {} {}", first, first == n - 2 ? "and" : "to", n - 1);
}

// Tensors with fewer pieces than shards.
std::vector<std::string> idle_ranks(const PlanRequest& r, const ShardedSpecs& sharded, int mp) {
  const auto& specs = r.pipeline->params().specs;
  std::vector<std::string> out;
  std::set<std::pair<std::string, i64>> told;
  for (size_t i = 0; i < specs.size(); ++i) {
    const Placement& p = sharded.layouts[i][Axis::mp];
    if (!p.is_sharded() || !specs[i].adapter.weight.empty())
      continue;  // adapters are sharded like their layers
    const i64 pieces = ceil_div(specs[i].shape[p.dim], p.unit);
    const std::string& pattern = sharded.sharding.rules[i].pattern;
    if (pieces >= mp || !told.emplace(pattern, pieces).second) continue;
    out.push_back(
        fmt::format("{} has {} for {} shards: {} of each mp group hold{} no part of it and idle{} there",
                    pattern, counted(pieces, "piece"), mp, ranks_from(pieces, mp),
                    pieces == mp - 1 ? "s" : "", pieces == mp - 1 ? "s" : ""));
  }
  return out;
}

// Classes of ranks that hold and compute the same shapes: first rank -> number of ranks.
std::vector<std::pair<int, i64>> classes_of(const PlanRequest& r, const ShardedSpecs& sharded,
                                            const PlanSetting& s) {
  const auto& specs = r.pipeline->params().specs;
  std::set<std::array<i64, 4>> cuts;  // size, unit, whether mp cuts it, whether dp cuts it
  for (size_t i = 0; i < specs.size(); ++i) {
    const Placement& p = sharded.layouts[i][Axis::mp];
    if (p.is_sharded()) cuts.insert({specs[i].shape[p.dim], p.unit, 1, 0});
    if (s.sharding == StateSharding::none || specs[i].shape.empty()) continue;
    const int dim = state_dim(sharded.layouts[i], specs[i].shape, s.mesh);
    cuts.insert({specs[i].shape[dim], p.is_sharded(dim) ? p.unit : 1, p.is_sharded(dim), 1});
  }
  const i64 each = s.per_device * s.mesh.dp(), tail = s.global_batch % each;
  std::map<std::vector<i64>, std::pair<int, i64>> classes;
  for (int rank = 0; rank < s.mesh.ranks(); ++rank) {
    const Coord c = coord_of(s.mesh, rank);
    std::vector<i64> key = {shard_range(std::min(each, s.global_batch), 1, s.mesh.dp(), c.dp()).size(),
                            shard_range(tail, 1, s.mesh.dp(), c.dp()).size()};
    for (const auto& [size, unit, by_mp, by_dp] : cuts) {
      i64 n = size;
      if (by_mp) n = shard_range(n, unit, s.mesh.mp(), c.mp()).size();
      if (by_dp) n = shard_range(n, 1, s.mesh.dp(), c.dp()).size();
      key.push_back(n);
    }
    ++classes.try_emplace(std::move(key), rank, 0).first->second.second;
  }
  std::vector<std::pair<int, i64>> out;
  for (const auto& [key, ranks] : classes) out.push_back(ranks);
  return out;
}

// The same setting with sequence parallelism, if memory is short on several model shards and it needs less.
std::optional<PlanCandidate> with_sequence_parallel(const PlanRequest& r, const PlanReport& p) {
  const PlanSetting& s = p.setting;
  const bool is_short = !p.fits || s.recompute || p.next;
  if (s.mesh.mp() == 1 || r.step.sequence_parallel || !is_short) return std::nullopt;
  PlanRequest q = r;
  q.step.sequence_parallel = true;
  const PlanCandidate c = CandidateMemory(q).of(s);
  return c.memory.total() < p.memory.total() ? std::optional(c) : std::nullopt;
}

// The reason for the number of rows per micro-batch.
std::string why_batch(const PlanRequest& r, const PlanReport& p) {
  const PlanSetting& s = p.setting;
  const std::string all = fmt::format("all rows of a replica: {} / dp {}", s.global_batch, s.mesh.dp());
  const bool whole = s.per_device * s.mesh.dp() >= s.global_batch;
  if (r.per_device && !r.per_device_assumed && s.per_device == *r.per_device)
    return "train.per_device_batch_size";
  if (!r.search || (p.fits && whole && r.global_batch)) return all;
  if (!p.fits) return "the smallest; not even that fits";
  if (p.next && p.next->setting.mesh.mp() == s.mesh.mp())
    return fmt::format("the largest power of two that fits: {} rows need {} of {} a rank",
                       p.next->setting.per_device, human_bytes(static_cast<u64>(p.next->memory.total())),
                       human_bytes(static_cast<u64>(p.next->limit)));
  return "the largest power of two that the search tries; train.per_device_batch_size sets another";
}

PlanSetting fixed_setting(const PlanRequest& r) {
  const i64 mp = r.n_model_shards.value_or(1), n = r.n_ranks.value_or(mp);
  const auto s = with_batches(r, mesh_of(n, mp), r.per_device);
  if (!s)
    throw UsageError("[mesh] {} replicas (n_ranks / n_model_shards) for a global batch of {} rows", n / mp,
                     *r.global_batch);
  PlanSetting out = *s;
  out.sharding = r.step.sharding;
  return out;
}

}  // namespace

PlanReport make_plan(const PlanRequest& r) {
  REDCO_CHECK(r.pipeline && !r.machines.slots.empty() && r.length >= 1);
  CandidateMemory memory(r);
  PlanReport out;
  out.title = r.title;
  out.machines = r.machines.text;
  out.length = r.length;
  out.n_parameters = memory.n_parameters();
  out.n_trained = memory.n_trained();
  out.notes = r.assumed;
  if (const PlannedRollouts a = r.pipeline->planned_rollouts(); a.answers > 0)
    out.notes.push_back(
        fmt::format("FLOPs and time are those of a step, without the {} of up to {} tokens that are sampled "
                    "before each epoch",
                    counted(a.answers, "answer"), a.max_new_tokens));
  const StateSharding wanted = r.step.sharding;
  if (r.search) {
    const PlanCandidate best = search_setting(r, memory, wanted, false, &out.next);
    out.setting = best.setting;
    // The best setting inside the hosts with sharded state.
    if (wanted == StateSharding::none && (!best.fits() || best.crosses))
      for (const StateSharding s :
           {StateSharding::optimizer, StateSharding::gradients, StateSharding::parameters}) {
        const PlanCandidate c = search_setting(r, memory, s, true, nullptr);
        if (!c.fits()) continue;
        out.alternative = c;
        break;
      }
  } else {
    out.setting = fixed_setting(r);
  }

  const PlanSetting& s = out.setting;
  const ShardedSpecs& sharded = memory.specs(s.mesh.mp());
  Trace trace;
  const PlanCandidate mine = memory.of(s, 0, &trace);
  out.sharding = sharded.sharding;
  out.memory = mine.memory;
  out.smallest_total = mine.memory.total();
  out.memory_limit = mine.limit;
  out.tightest = r.machines.tightest(s.mesh.ranks());
  out.ranks_per_host = r.machines.most_ranks_per_host(s.mesh.ranks());
  out.shared_memory = !r.machines.own_memory;
  out.fits = mine.fits();
  out.accumulation = (s.global_batch + s.per_device * s.mesh.dp() - 1) / (s.per_device * s.mesh.dp());
  for (const LedgerLine& l : trace.collectives) out.collectives.push_back(collective_of(l));
  out.lines = trace.lines;
  out.flops_of_rank = trace.flops;
  if (r.model) {
    out.time = trace.time;
    out.speeds = r.model->speeds().origin;
  }
  for (const auto& [rank, count] : classes_of(r, sharded, s)) {
    double flops = trace.flops;
    if (rank != 0) {
      Trace other;
      const PlanCandidate c = memory.of(s, rank, &other);
      out.smallest_total = std::min(out.smallest_total, c.memory.total());
      flops = other.flops;
      if (out.time && other.time.total > out.time->total) out.time = other.time;
    }
    out.flops += flops * static_cast<double>(count);
  }
  const bool own = r.machines.own_memory;
  out.smallest_n_model_shards = smallest_shards(r, memory, s, own ? r.machines.ranks() : s.mesh.ranks());

  if (!out.fits) out.devices_needed = devices_needed(r, s);
  out.why_batch = why_batch(r, out);
  out.with_sequence_parallel = with_sequence_parallel(r, out);

  for (const std::string& w : sharded.sharding.warnings) out.warnings.push_back(w);
  for (std::string& w : cost_of_rules(r, s, trace)) {
    if (r.strict)
      throw UsageError("[sharding] parallel.strict: {}; remove the rule, or set parallel.strict=false", w);
    out.warnings.push_back(std::move(w));
  }
  for (std::string& w : idle_ranks(r, sharded, s.mesh.mp())) out.warnings.push_back(std::move(w));
  if (mine.crosses) {
    out.crossing_bytes = mine.crossing_bytes;
    out.warnings.push_back(
        fmt::format("the {} shards of a model copy span hosts: {} pass between hosts in each step",
                    s.mesh.mp(), human_bytes(static_cast<u64>(mine.crossing_bytes))));
  }
  if (s.sharding >= StateSharding::gradients && out.accumulation > 1 && s.mesh.dp() > 1)
    out.notes.push_back(fmt::format(
        "{}: gradients are summed over the replicas in each of the {} micro-batches, so the result "
        "differs by rounding from that of unsharded state",
        name_of(s.sharding), out.accumulation));
  return out;
}

}  // namespace redco

#include "plan/search.h"

#include <algorithm>

namespace redco {

namespace {

constexpr i64 kMostRows = 1024;  // largest micro-batch of the search

i64 lack(const PlanCandidate& c) { return c.memory.total() - c.limit; }

}  // namespace

std::optional<PlanSetting> with_batches(const PlanRequest& r, const Mesh& mesh,
                                        std::optional<i64> per_device) {
  PlanSetting s{.mesh = mesh, .recompute = r.recompute.value_or(false)};
  if (r.global_batch) {
    if (mesh.dp() > *r.global_batch) return std::nullopt;
    const i64 share = ceil_div(*r.global_batch, mesh.dp());
    s.global_batch = *r.global_batch;
    s.per_device = std::min(per_device.value_or(share), share);
  } else {
    s.per_device = per_device.value_or(1);
    s.global_batch = s.per_device * mesh.dp();
  }
  return s;
}

PlanCandidate search_setting(const PlanRequest& r, CandidateMemory& memory, StateSharding sharding,
                             bool inside_only, std::optional<PlanCandidate>* next) {
  const i64 devices = r.n_ranks.value_or(r.machines.ranks());
  std::vector<Mesh> inside, across;
  for (i64 mp = 1; mp <= devices; ++mp) {
    if (devices % mp != 0 || (r.n_model_shards && *r.n_model_shards != mp)) continue;
    const Mesh mesh{static_cast<int>(devices / mp), static_cast<int>(mp)};
    (crossing(r.machines, mesh, Axis::mp).crosses ? across : inside).push_back(mesh);
  }
  std::vector<bool> recomputes = {false, true};
  if (r.recompute) recomputes = {*r.recompute};

  std::optional<PlanCandidate> best, nearest;
  auto candidate = [&](const Mesh& mesh, bool recompute, i64 rows,
                       bool even_if_hopeless) -> std::optional<PlanCandidate> {
    auto s = with_batches(r, mesh, r.per_device ? r.per_device : std::optional<i64>(rows));
    if (!s) return std::nullopt;
    s->recompute = recompute;
    s->sharding = sharding;
    if (!even_if_hopeless && !memory.may_fit(*s)) return std::nullopt;
    return memory.of(*s);
  };
  std::vector<const std::vector<Mesh>*> kinds = {&inside};
  if (!inside_only) kinds.push_back(&across);
  for (const auto* meshes : kinds) {
    for (const bool recompute : recomputes) {
      for (const Mesh& mesh : *meshes) {
        auto c = candidate(mesh, recompute, 1, false);
        if (!c) continue;
        if (!c->fits()) {
          if (!nearest || lack(*c) < lack(*nearest)) nearest = c;
          continue;
        }
        best = c;
        break;
      }
      if (best) break;
    }
    if (best) break;
  }
  if (!best) {
    if (!nearest) {  // even parameters and state do not fit: use the most shards
      const std::vector<Mesh>& meshes = !across.empty() && !inside_only ? across : inside;
      if (!meshes.empty()) nearest = candidate(meshes.back(), recomputes.back(), 1, true);
    }
    if (!nearest) {  // dp > global_batch_size on every mesh that divides the devices
      const i64 mp = r.n_model_shards.value_or(1);
      PlanSetting s{
          .mesh = Mesh(1, static_cast<int>(mp)), .global_batch = r.global_batch.value_or(1), .per_device = 1};
      s.recompute = recomputes.back();
      s.sharding = sharding;
      nearest = memory.of(s);
    }
    return *nearest;
  }

  const Mesh mesh = best->setting.mesh;
  const i64 most = r.global_batch ? ceil_div(*r.global_batch, mesh.dp()) : kMostRows;
  std::optional<PlanCandidate> over;
  if (!r.per_device)
    for (i64 rows = 2; rows <= most; rows *= 2) {
      auto c = candidate(mesh, best->setting.recompute, rows, true);
      if (!c) break;
      if (!c->fits()) {
        over = c;
        break;
      }
      best = c;
    }
  if (!over) {  // the micro-batch cannot grow: try fewer shards
    for (i64 mp = mesh.mp() - 1; mp >= 1 && !over && !r.n_model_shards; --mp) {
      if (devices % mp != 0) continue;
      auto c = candidate({static_cast<int>(devices / mp), static_cast<int>(mp)}, best->setting.recompute,
                         best->setting.per_device, true);
      if (c && !c->fits()) over = c;
    }
  }
  if (next) *next = over;
  return *best;
}

std::optional<i64> smallest_shards(const PlanRequest& r, CandidateMemory& memory, const PlanSetting& like,
                                   i64 devices) {
  std::vector<bool> recomputes = {like.recompute};
  if (r.search && !r.recompute) recomputes = {false, true};
  for (i64 mp = 1; mp <= devices; ++mp) {
    i64 dp = devices / mp;
    if (r.global_batch) dp = std::min(dp, *r.global_batch);
    const Mesh mesh{static_cast<int>(std::max<i64>(1, dp)), static_cast<int>(mp)};
    const std::optional<i64> rows = r.search && !r.per_device ? std::optional<i64>(1) : like.per_device;
    for (const bool recompute : recomputes) {
      auto s = with_batches(r, mesh, rows);
      if (!s) continue;
      s->recompute = recompute;
      s->sharding = like.sharding;
      if (!memory.may_fit(*s)) break;
      if (memory.of(*s).fits()) return mp;
    }
  }
  return std::nullopt;
}

std::optional<i64> devices_needed(const PlanRequest& request, const PlanSetting& like) {
  PlanRequest r = request;
  Machines& m = r.machines;
  if (!m.memories.empty()) m.memory = *std::min_element(m.memories.begin(), m.memories.end());
  m.memories.clear();
  m.names.clear();
  CandidateMemory memory(r);
  const std::optional<i64> rows = r.search && !r.per_device ? std::optional<i64>(1) : like.per_device;
  for (i64 n = 1; n <= kMostDevices;) {
    m.slots.assign(static_cast<size_t>(n), 1);
    auto s = with_batches(r, {1, static_cast<int>(n)}, rows);
    if (!s) return std::nullopt;
    s->recompute = like.recompute;
    s->sharding = like.sharding;
    const bool hopeless = !memory.may_fit(*s);
    if (!hopeless && memory.of(*s).fits()) return n;
    n += hopeless ? 1 : std::max<i64>(1, n / 8);
  }
  return std::nullopt;
}

}  // namespace redco

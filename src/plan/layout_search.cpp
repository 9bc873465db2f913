#include "plan/layout_search.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"

namespace redco {

namespace {

// A smaller micro-batch that takes this many times the best time ends the search for smaller ones.
constexpr double kSlower = 1.05;

class Search {
 public:
  explicit Search(const PlanRequest& request) : request_(request), memory_(request) {}

  // The micro-batches of a mesh, with or without recompute.
  void add(const Mesh& mesh, StateSharding sharding) {
    i64 stored = 0;  // the largest micro-batch that fits without recompute
    for (const bool recompute : {false, true}) {
      if (request_.recompute && *request_.recompute != recompute) continue;
      double best = 0;
      for (const i64 rows : micro_batches(mesh)) {
        if (recompute && rows <= stored) break;
        const auto t = timed(mesh, sharding, recompute, rows);
        if (!t) continue;
        if (!recompute) stored = std::max(stored, rows);
        found_.fitting.push_back(*t);
        if (best > 0 && t->seconds > kSlower * best) break;
        best = best > 0 ? std::min(best, t->seconds) : t->seconds;
      }
    }
  }

  LayoutSearch take() {
    std::ranges::stable_sort(found_.fitting, [](const TimedSetting& a, const TimedSetting& b) {
      return std::tuple(a.seconds, a.setting.mesh.mp()) < std::tuple(b.seconds, b.setting.mesh.mp());
    });
    if (!found_.fitting.empty()) found_.nearest.reset();
    return std::move(found_);
  }
  bool found() const { return !found_.fitting.empty(); }

 private:
  // Rows of a replica, the most first.
  std::vector<i64> micro_batches(const Mesh& mesh) const {
    if (request_.per_device) return {*request_.per_device};
    if (mesh.dp() > *request_.global_batch) return {};
    const i64 share = ceil_div(*request_.global_batch, mesh.dp());
    std::vector<i64> out = {share};
    i64 power = 1;
    while (power * 2 < share) power *= 2;
    for (; power >= 1; power /= 2)
      if (power < share) out.push_back(power);
    return out;
  }

  std::optional<TimedSetting> timed(const Mesh& mesh, StateSharding sharding, bool recompute, i64 rows) {
    auto s = with_batches(request_, mesh, rows);
    if (!s) return std::nullopt;
    s->recompute = recompute;
    s->sharding = sharding;
    if (!memory_.may_fit(*s) && found_.nearest) return std::nullopt;
    Trace trace;
    const PlanCandidate c = memory_.of(*s, 0, &trace);
    if (c.fits()) return TimedSetting{*s, c.memory, trace.time.total};
    const auto lack = [](const PlanCandidate& x) { return x.memory.total() - x.limit; };
    if (!found_.nearest || lack(c) < lack(*found_.nearest)) found_.nearest = c;
    return std::nullopt;
  }

  const PlanRequest& request_;
  CandidateMemory memory_;
  LayoutSearch found_;
};

}  // namespace

LayoutSearch search_layouts(const PlanRequest& r, const std::vector<StateSharding>& shardings) {
  REDCO_CHECK(r.model && r.global_batch && !shardings.empty());
  const i64 ranks = r.n_ranks.value_or(r.machines.ranks());
  Search search(r);
  for (const bool across : {false, true}) {
    if (search.found()) break;
    for (i64 mp = 1; mp <= ranks; ++mp) {
      if (ranks % mp != 0 || (r.n_model_shards && *r.n_model_shards != mp)) continue;
      const Mesh mesh{static_cast<int>(ranks / mp), static_cast<int>(mp)};
      if (crossing(r.machines, mesh, Axis::mp).crosses != across) continue;
      for (const StateSharding s : shardings)
        if (mesh.dp() > 1 || s == shardings.front()) search.add(mesh, s);
    }
  }
  return search.take();
}

}  // namespace redco

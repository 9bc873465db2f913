#include "plan/scaling.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/words.h"

namespace redco {

namespace {

// The setting of `like` on other ranks; nullopt if it isn't possible there or doesn't fit.
std::optional<TimedSetting> kept(const PlanRequest& r, const PlanSetting& like) {
  if (*r.n_ranks % like.mesh.mp() != 0) return std::nullopt;
  const Mesh mesh{static_cast<int>(*r.n_ranks / like.mesh.mp()), like.mesh.mp()};
  auto s = with_batches(r, mesh, like.per_device);
  if (!s || s->per_device != like.per_device) return std::nullopt;
  s->recompute = like.recompute;
  s->sharding = like.sharding;
  Trace trace;
  const PlanCandidate c = CandidateMemory(r).of(*s, 0, &trace);
  if (!c.fits()) return std::nullopt;
  return TimedSetting{*s, c.memory, trace.time.total};
}

// From all ranks down, while a setting fits. `rows(n)`: the rows of a step on n ranks.
template <class Rows>
std::vector<ScalingPoint> points(const PlanRequest& request, const std::vector<StateSharding>& shardings,
                                 const TimedSetting& all, const Rows& rows) {
  std::vector<ScalingPoint> out;
  const auto add = [&](const TimedSetting& t) {
    const double tokens = static_cast<double>(t.setting.global_batch * request.length) / t.seconds;
    out.push_back({.setting = t.setting, .seconds = t.seconds, .tokens_per_s = tokens});
  };
  add(all);
  PlanSetting like = all.setting;
  i64 n = 1;
  while (2 * n < all.setting.mesh.ranks()) n *= 2;
  for (; n >= 1; n /= 2) {
    PlanRequest r = request;
    r.n_ranks = n;
    r.global_batch = rows(n);
    if (*r.global_batch == 0) break;
    auto t = kept(r, like);
    if (!t) {
      const LayoutSearch found = search_layouts(r, shardings);
      if (found.fitting.empty()) break;
      t = found.fitting.front();
    }
    like = t->setting;
    add(*t);
  }
  std::ranges::reverse(out);
  const auto each = [](const ScalingPoint& p) { return p.tokens_per_s / p.setting.mesh.ranks(); };
  double best = 0;
  for (const ScalingPoint& p : out) best = std::max(best, each(p));
  for (ScalingPoint& p : out) p.efficiency = each(p) / best;
  return out;
}

std::string table(const std::vector<ScalingPoint>& all, bool tokens) {
  std::string t =
      fmt::format("  {:>6} {:>12} {:>6} {:>12} {:>11} {:>14} {:>11}  layout\n", "ranks", "dp x mp", "rows",
                  "micro-batch", "step", tokens ? "tokens/s" : "rows/s", "efficiency");
  for (const ScalingPoint& p : all) {
    const PlanSetting& s = p.setting;
    std::string layout = s.recompute ? "recompute block" : "";
    if (s.sharding != StateSharding::none)
      layout += fmt::format("{}{}", layout.empty() ? "" : ", ", name_of(s.sharding));
    t += fmt::format("  {:>6} {:>12} {:>6} {:>12} {:>11} {:>14} {:>11}  {}\n", s.mesh.ranks(),
                     fmt::format("{} x {}", s.mesh.dp(), s.mesh.mp()), s.global_batch, s.per_device,
                     human_duration(p.seconds), human_count(p.tokens_per_s), human_percent(p.efficiency),
                     layout);
  }
  return t;
}

nlohmann::ordered_json points_json(const std::vector<ScalingPoint>& all) {
  auto j = nlohmann::ordered_json::array();
  for (const ScalingPoint& p : all)
    j.push_back({{"ranks", p.setting.mesh.ranks()},
                 {"dp", p.setting.mesh.dp()},
                 {"mp", p.setting.mesh.mp()},
                 {"global_batch_size", p.setting.global_batch},
                 {"per_device_batch_size", p.setting.per_device},
                 {"recompute", p.setting.recompute ? "block" : "none"},
                 {"sharded_state", name_of(p.setting.sharding)},
                 {"step_s", p.seconds},
                 {"tokens_per_s", p.tokens_per_s},
                 {"efficiency", p.efficiency}});
  return j;
}

}  // namespace

Scaling predict_scaling(const PlanRequest& request, const std::vector<StateSharding>& shardings) {
  Scaling out{
      .length = request.length, .machines = request.machines.text, .speeds = request.model->speeds().origin};
  LayoutSearch all = search_layouts(request, shardings);
  if (all.fitting.empty()) return out;
  const TimedSetting& best = all.fitting.front();
  const i64 ranks = best.setting.mesh.ranks(), batch = *request.global_batch;
  out.weak = points(request, shardings, best, [&](i64 n) { return batch * n / ranks; });
  out.strong = points(request, shardings, best, [&](i64) { return batch; });
  return out;
}

std::string to_text(const Scaling& s) {
  if (s.weak.empty()) return fmt::format("no layout fits on {}\n", s.machines);
  const bool tokens = s.length > 1;
  std::string t =
      fmt::format("predicted scaling on {} ({}){}\n\nweak: the rows of a step grow with the ranks\n",
                  s.machines, s.speeds, tokens ? fmt::format(", {} tokens a row", s.length) : "");
  t += table(s.weak, tokens);
  t += "\nstrong: the rows of a step stay the same\n" + table(s.strong, tokens);
  return t;
}

std::string to_json(const Scaling& s) {
  const nlohmann::ordered_json j = {{"machines", s.machines},
                                    {"speeds", s.speeds},
                                    {"length", s.length},
                                    {"weak", points_json(s.weak)},
                                    {"strong", points_json(s.strong)}};
  return j.dump(2) + "\n";
}

}  // namespace redco

#include "train/early_stopping.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/words.h"

namespace redco {

MetricWatch::MetricWatch(const SaveBestSettings& best, const EarlyStoppingSettings& early) : early_(early) {
  for (const std::string& m : best.max) sides_[m] = true;
  for (const std::string& m : best.min) sides_[m] = false;
  if (!early.metric) return;
  const auto nature = early.mode ? std::optional(*early.mode == "max") : more_is_better(*early.metric);
  if (!nature)
    throw UsageError(
        "[train] train.early_stopping.metric={}: the name does not tell whether larger is better. Set "
        "train.early_stopping.mode to max or min",
        *early.metric);
  more_ = *nature;
}

void MetricWatch::check(const Metrics& metrics) const {
  std::vector<std::string> names;
  for (const auto& [name, value] : metrics) names.push_back(name);
  const auto demand = [&](const char* key, const std::string& name) {
    if (metrics.count(name)) return;
    const std::string bare = name.starts_with("eval_") ? name.substr(5) : name;
    const std::string near = metrics.count(bare) ? bare : nearest(name, names);
    throw UsageError("[eval] {} names '{}', which this pipeline's evaluation does not have; it has {}{}", key,
                     excerpt(name), fmt::join(names, ", "),
                     near.empty() ? "" : fmt::format("; did you mean {}?", near));
  };
  for (const auto& [name, more] : sides_) demand("checkpoint.save_best_by", name);
  if (early_.metric) demand("train.early_stopping.metric", *early_.metric);
}

std::vector<std::string> MetricWatch::see(const Metrics& metrics, bool periodic, TrainState& state) const {
  check(metrics);
  std::vector<std::string> best;
  for (const auto& [name, more] : sides_) {
    const double now = metrics.at(name);
    const auto was = state.best.find(name);
    // NaN and infinity are never best.
    if (!std::isfinite(now) || (was != state.best.end() && !(more ? now > was->second : now < was->second)))
      continue;
    state.best[name] = now;
    state.best_step[name] = state.step;
    best.push_back(name);
  }
  if (!early_.metric || !periodic) return best;
  if (!state.waiting || state.waiting->metric != *early_.metric)
    state.waiting = EarlyStoppingState{*early_.metric, std::nullopt, 0, 0};
  auto& w = *state.waiting;
  const double now = metrics.at(*early_.metric);
  const bool better =
      std::isfinite(now) &&
      (!w.best || (more_ ? now > *w.best + early_.min_delta : now < *w.best - early_.min_delta));
  if (better) {
    w = {*early_.metric, now, state.step, 0};
  } else {
    ++w.evaluations;
  }
  return best;
}

bool MetricWatch::exhausted(const TrainState& state) const {
  return early_.metric && state.waiting && state.waiting->metric == *early_.metric &&
         state.waiting->evaluations >= early_.patience;
}

std::string MetricWatch::why(const TrainState& state) const {
  const auto& w = *state.waiting;
  std::string s = fmt::format("{} has not {}{} for {}", w.metric, more_ ? "risen" : "fallen",
                              early_.min_delta > 0 ? fmt::format(" by more than {}", early_.min_delta) : "",
                              counted(w.evaluations, "evaluation"));
  s += w.best ? fmt::format("; its best was {} after step {}", human_number(*w.best), w.best_step)
              : std::string("; it was never finite");
  return s;
}

}  // namespace redco

#include "train/interval.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/process.h"
#include "base/words.h"
#include "kernels/peak.h"

namespace redco {

void Interval::add(const StepOutcome& step, double learning_rate, i64 flops, double waiting) {
  ++now_.steps;
  now_.flops += flops;
  now_.waiting += waiting;
  now_.weight += step.weight;
  if (step.finite) {
    ++now_.finite;
    now_.loss += step.loss;
    for (const auto& [name, mean] : step.terms) now_.terms[name] += mean;
  } else {
    ++skipped_;
  }
  last_ = step;
  learning_rate_ = learning_rate;
}

double Interval::mean_loss(const Sums& s) const {
  return s.finite ? s.loss / static_cast<double>(s.finite) : NAN;
}

double Interval::peak_share(const Sums& s, double time) const {
  if (peak_ <= 0) return NAN;
  return kernels::peak_share(static_cast<double>(s.flops) / time, peak_);
}

Values Interval::close(double epoch, const std::map<std::string, double>& notes) {
  Sums& s = now_;
  s.time = std::max(1e-9, seconds() - begin_);
  Values v = {{"epoch", epoch},
              {"loss", mean_loss(s)},
              {"learning_rate", learning_rate_},
              {"grad_norm", last_.grad_norm},
              {unit_ + "_per_s", s.weight / s.time},
              {"step_s", s.time / static_cast<double>(s.steps)},
              {"waiting_s", s.waiting / static_cast<double>(s.steps)},
              {"ceiling_share", peak_share(s, s.time)},
              {"peak_memory_bytes", static_cast<double>(peak_memory_bytes())}};
  const auto add = [&v](const char* what, const std::string& name, double value) {
    if (std::ranges::find(v, name, &Values::value_type::first) != v.end())
      throw UsageError("[pipeline] {} '{}', a name that metrics.jsonl has already; use another", what, name);
    v.emplace_back(name, value);
  };
  if (s.terms.size() > 1)
    for (const auto& [name, sum] : s.terms)
      if (name != "loss")
        add("loss() has a term", name, s.finite ? sum / static_cast<double>(s.finite) : NAN);
  for (const auto& [name, value] : notes) add("notes() has a value", name, value);
  if (skipped_ > 0) v.emplace_back("skipped_steps", static_cast<double>(skipped_));
  closed_ = std::move(s);
  now_ = {};
  begin_ = seconds();
  return v;
}

Progress::Fields Interval::fields(double epoch, const std::map<std::string, double>& notes) const {
  const Sums& s = now_.steps ? now_ : closed_;
  const double time = now_.steps ? std::max(1e-9, seconds() - begin_) : closed_.time;
  Progress::Fields f = {{"epoch", fmt::format("{:.2f}", epoch)}};
  if (s.steps == 0) return f;
  f.emplace_back("loss", human_number(mean_loss(s)));
  for (const auto& [name, value] : notes) {
    std::string words = name;
    std::replace(words.begin(), words.end(), '_', ' ');
    f.emplace_back(words, human_number(value));
  }
  f.emplace_back("lr", human_number(learning_rate_));
  f.emplace_back("grad norm", human_number(last_.grad_norm));
  f.emplace_back("", human_count(s.weight / time) + " " + unit_ + "/s");
  if (peak_ > 0) f.emplace_back("", human_percent(peak_share(s, time)) + " of peak matmul speed");
  f.emplace_back("", human_bytes(static_cast<u64>(peak_memory_bytes())));
  return f;
}

}  // namespace redco

#include "generate/beam_search.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace redco {

namespace {
constexpr double kOut = -1e9;  // far below every log-probability
}

const char* name_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::eos:
      return "eos";
    case FinishReason::stop:
      return "stop";
    case FinishReason::length:
      return "length";
    case FinishReason::interrupted:
      return "interrupted";
  }
  return "";
}

BeamSearch::BeamSearch(const GenerationSettings& s, const GenerationTokens& t, i64 limit)
    : beams_(s.num_beams),
      // Enough for num_beams running beams, even if as many candidates as possible end.
      keep_(std::max<i64>(2, 1 + static_cast<i64>(t.eos.size())) * s.num_beams),
      limit_(limit),
      length_penalty_(s.length_penalty),
      early_stopping_(s.early_stopping),
      eos_(t.eos),
      running_(s.num_beams),
      finished_(s.num_beams, Finished{{}, kOut, false}) {
  for (i64 b = 1; b < beams_; ++b) running_[b].score = kOut;
}

double BeamSearch::penalized(double score, i64 length) const {
  return score / std::pow(static_cast<double>(length), length_penalty_);
}

void BeamSearch::advance(std::span<const Candidate> best, const std::vector<bool>& stops) {
  REDCO_CHECK(static_cast<i64>(best.size()) == keep_ && stops.size() == best.size() && !done_,
              "{} candidates of {}", best.size(), keep_);
  const i64 length = static_cast<i64>(running_[0].ids.size()) + 1;  // with the new token
  const bool full = early_stopping_ == "true" && std::all_of(finished_.begin(), finished_.end(),
                                                             [](const Finished& f) { return f.is_answer; });
  std::vector<Running> next;
  std::vector<std::pair<double, size_t>> order;  // of the candidates that may continue
  std::vector<Finished> merged = std::move(finished_);
  bool all_end = true;
  for (size_t i = 0; i < best.size(); ++i) {
    const Candidate& c = best[i];
    const bool eos = std::find(eos_.begin(), eos_.end(), c.token) != eos_.end();
    const bool ends = eos || stops[i] || length >= limit_;
    all_end &= ends;
    order.emplace_back(ends ? c.score + kOut : c.score, i);
    if (!ends || static_cast<i64>(i) >= beams_) continue;
    double score = penalized(c.score, length);
    if (full) score += kOut;
    if (!can_improve_) score += kOut;
    Finished f{{running_[c.beam].ids, FinishReason::length, score}, score, true};
    f.answer.ids.push_back(c.token);
    f.answer.finish = eos ? FinishReason::eos : stops[i] ? FinishReason::stop : FinishReason::length;
    merged.push_back(std::move(f));
  }
  std::stable_sort(merged.begin(), merged.end(),
                   [](const Finished& a, const Finished& b) { return a.score > b.score; });
  merged.resize(beams_);
  finished_ = std::move(merged);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (i64 b = 0; b < beams_; ++b) {
    const auto& [score, i] = order[b];
    Running r{running_[best[i].beam].ids, score, best[i].beam};
    r.ids.push_back(best[i].token);
    next.push_back(std::move(r));
  }
  running_ = std::move(next);

  const bool all_finished =
      std::all_of(finished_.begin(), finished_.end(), [](const Finished& f) { return f.is_answer; });
  const i64 hopeful = early_stopping_ == "never" && length_penalty_ > 0 ? limit_ : length;
  const double worst = all_finished ? finished_.back().score : kOut;
  if (!(penalized(running_[0].score, hopeful) > worst)) can_improve_ = false;
  done_ = !can_improve_ || all_end || (all_finished && early_stopping_ == "true");
}

std::vector<Answer> BeamSearch::best(i64 n) const {
  std::vector<Answer> out;
  for (const Finished& f : finished_)
    if (f.is_answer && static_cast<i64>(out.size()) < n) out.push_back(f.answer);
  for (i64 b = 0; static_cast<i64>(out.size()) < n && b < beams_; ++b)
    out.push_back({running_[b].ids, FinishReason::interrupted,
                   running_[b].ids.empty() ? 0 : penalized(running_[b].score, running_[b].ids.size())});
  return out;
}

}  // namespace redco

#include "generate/token_chooser.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "base/parallel.h"
#include "generate/timestamp_rules.h"
#include "generate/token_draw.h"

namespace redco {

bool TokenChooser::choose(const Tensor& logits, const std::vector<PendingSlot>& pending,
                          std::vector<Decision>& decisions) {
  if (batch_.width > 1) return search(logits, pending, decisions);
  return s_.draws() ? sample(logits, pending, decisions) : greedy(logits, pending, decisions);
}

AnswerState TokenChooser::state(const AnswerSlot& s, i64 beam) const {
  return {s.ids[beam], s.n_new, s.limit};
}

// Of slots of one row: changes their scores by the processors.
std::vector<i64> TokenChooser::processed(LocalScores& scores, const std::vector<PendingSlot>& pending) const {
  std::vector<i64> rows;
  for (const PendingSlot& c : pending) rows.push_back(c.rows[0]);
  if (processors_)
    scores.rows(rows, [&](const auto& all) {
      parallel::for_each(static_cast<i64>(all.size()), [&](i64 i) {
        process(all[i], scores.first(), state(batch_.slots[pending[i].slot], 0), s_, t_);
      });
    });
  if (t_.timestamps) prefer_timestamps(scores, rows, mp_, *t_.timestamps);
  return rows;
}

// The most likely token of each row, over all parts of the vocabulary.
bool TokenChooser::greedy(const Tensor& logits, const std::vector<PendingSlot>& pending,
                          std::vector<Decision>& out) {
  LocalScores scores(logits);
  std::vector<ScoredToken> best_here(pending.size());
  scores.rows(processed(scores, pending), [&](const auto& rows) {
    parallel::for_each(static_cast<i64>(rows.size()), [&](i64 i) {
      const auto row = rows[i];
      const i64 at = kernels::first_of_highest(row.data(), static_cast<i64>(row.size()));
      best_here[i] = at < 0
                         ? ScoredToken{-std::numeric_limits<double>::infinity(), -1}
                         : ScoredToken{static_cast<double>(row[at]), static_cast<i32>(scores.first() + at)};
    });
  });
  const auto all = gathered(mp_, scores.cut(), best_here);
  bool finite = true;
  for (size_t i = 0; first_ && i < pending.size(); ++i) {
    ScoredToken best = all[i];
    // The parts are in order: of equal scores the lowest id stays.
    for (size_t k = i; k < all.size(); k += pending.size())
      if (all[k].id >= 0 && (best.id < 0 || all[k].score > best.score)) best = all[k];
    finite &= best.id >= 0;
    take(pending[i], std::max(0, best.id), out[i]);
  }
  return finite;
}

bool TokenChooser::sample(const Tensor& logits, const std::vector<PendingSlot>& pending,
                          std::vector<Decision>& out) {
  LocalScores scores(logits);
  std::vector<double> places;
  for (const PendingSlot& c : pending) {
    const AnswerSlot& slot = batch_.slots[c.slot];
    const AnswerJob& job = batch_.jobs[slot.job];
    places.push_back(
        uniform(static_cast<u64>(s_.seed), prompts_[job.prompt].ordinal, job.sample, slot.n_new));
  }
  std::vector<i32> tokens;
  scores.rows(processed(scores, pending), [&](auto& rows) {
    using T = typename std::decay_t<decltype(rows[0])>::value_type;
    tokens = TokenDraw<T>(mp_, scores.cut(), rows, scores.first(), s_).draw(places);
  });
  for (size_t i = 0; first_ && i < pending.size(); ++i) take(pending[i], std::max(0, tokens[i]), out[i]);
  return std::ranges::all_of(tokens, [](i32 t) { return t >= 0; });
}

// On the first rank: a slot of one row continues with this token.
void TokenChooser::take(const PendingSlot& c, i32 token, Decision& d) {
  AnswerSlot& slot = batch_.slots[c.slot];
  const AnswerJob& job = batch_.jobs[slot.job];
  d.tokens = {token};
  d.sources = {0};
  // The callbacks see the token at its place; Scheduler::apply() adds it on every rank.
  std::vector<i32>& ids = slot.ids[0];
  ids.push_back(token);
  const auto fresh = std::span<const i32>(ids).last(slot.n_new + 1);
  Answer a{{}, FinishReason::length, 0};
  if (std::find(t_.eos.begin(), t_.eos.end(), token) != t_.eos.end()) {
    a.finish = FinishReason::eos;
    d.done = true;
  } else if (o_.stops && o_.stops(fresh)) {
    a.finish = FinishReason::stop;
    d.done = true;
  } else if (slot.n_new + 1 >= slot.limit) {
    d.done = true;
  } else if (batch_.interrupted) {
    a.finish = FinishReason::interrupted;
    d.done = true;
  }
  if (o_.on_token) o_.on_token(job.prompt, job.sample, fresh, d.done);
  if (d.done) {
    a.ids.assign(fresh.begin(), fresh.end());
    batch_.answers[job.prompt][job.sample] = std::move(a);
  }
  ids.pop_back();
}

// Beams. A log-probability needs the sum over the whole vocabulary; then each part offers its best tokens.
bool TokenChooser::search(const Tensor& logits, const std::vector<PendingSlot>& pending,
                          std::vector<Decision>& out) {
  const LocalScores scores(logits);
  struct Total {
    double peak, sum;  // of a row: the maximum, and the sum of exp(x - maximum)
  };
  std::vector<Total> here;
  for (const PendingSlot& c : pending)
    for (const i64 r : distinct(c))
      scores.row(r, [&](auto row) {
        double top = -std::numeric_limits<double>::infinity(), total = 0;
        for (const auto x : row) top = std::max<double>(top, x);
        for (const auto x : row) total += std::exp(static_cast<double>(x) - top);
        here.push_back({top, row.empty() ? 0 : total});
      });
  const auto totals = gathered(mp_, scores.cut(), here);
  const i64 keep = std::max<i64>(2, 1 + static_cast<i64>(t_.eos.size())) * batch_.width;
  std::vector<ScoredToken> offers;
  size_t at = 0;
  for (const PendingSlot& c : pending) {
    const auto rows = distinct(c);
    for (size_t b = 0; b < rows.size(); ++b, ++at) {
      double top = here[at].peak, total = 0;
      for (size_t k = at; k < totals.size(); k += here.size()) top = std::max(top, totals[k].peak);
      for (size_t k = at; k < totals.size(); k += here.size())
        if (totals[k].sum != 0) total += totals[k].sum * std::exp(totals[k].peak - top);
      const double log_sum = top + std::log(total);
      std::vector<double> row = scores.copy(rows[b]);
      for (double& x : row) x -= log_sum;
      if (processors_)
        process<double>(row, scores.first(), state(batch_.slots[c.slot], static_cast<i64>(b)), s_, t_);
      const auto best = best_tokens<double>(row, scores.first(), keep);
      offers.insert(offers.end(), best.begin(), best.end());
    }
  }
  const auto all = gathered(mp_, scores.cut(), offers);
  bool finite = true;
  size_t offset = 0;
  for (size_t i = 0; i < pending.size(); ++i) {
    const size_t n = distinct(pending[i]).size();
    if (first_) finite &= advance(pending[i], all, offset, n, keep, offers.size(), out[i]);
    offset += n * static_cast<size_t>(keep);
  }
  return finite;
}
// After a prefill all beams have the scores of one row.
std::vector<i64> TokenChooser::distinct(const PendingSlot& c) {
  if (c.rows.size() > 1 && c.rows[0] == c.rows[1]) return {c.rows[0]};
  return c.rows;
}

// On the first rank: one step of a beam search. Its candidates are
// offers[part * stride + offset + row * keep + k].
bool TokenChooser::advance(const PendingSlot& c, const std::vector<ScoredToken>& offers, size_t offset,
                           size_t n_rows, i64 keep, size_t stride, Decision& d) {
  AnswerSlot& slot = batch_.slots[c.slot];
  BeamSearch& search = *slot.beams;
  std::vector<BeamSearch::Candidate> all;
  for (size_t part = 0; part < offers.size(); part += stride)
    for (i64 b = 0; b < batch_.width; ++b)
      for (i64 k = 0; k < keep; ++k) {
        const ScoredToken& t = offers[part + offset + (n_rows == 1 ? 0 : b) * static_cast<size_t>(keep) + k];
        if (t.id >= 0) all.push_back({search.score(b) + t.score, static_cast<i32>(b), t.id});
      }
  if (all.empty()) {  // every token is forbidden, or no score is finite
    d.tokens.assign(batch_.width, t_.pad);
    d.sources.assign(batch_.width, 0);
    return false;
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::tie(b.score, a.beam, a.token) < std::tie(a.score, b.beam, b.token);
  });
  all.resize(keep, {-std::numeric_limits<double>::infinity(), 0, t_.pad});
  std::vector<bool> stops(keep, false);
  for (i64 k = 0; o_.stops && k < keep; ++k) {
    std::vector<i32> fresh = search.ids(all[k].beam);
    fresh.push_back(all[k].token);
    stops[k] = o_.stops(fresh);
  }
  search.advance(all, stops);
  for (i64 b = 0; b < batch_.width; ++b) {
    d.tokens.push_back(search.ids(b).back());
    d.sources.push_back(search.source(b));
  }
  d.done = search.done() || batch_.interrupted;
  if (d.done) batch_.answers[batch_.jobs[slot.job].prompt] = search.best(s_.num_return_sequences);
  return true;
}

}  // namespace redco

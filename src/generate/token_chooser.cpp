#include "generate/token_chooser.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace redco {

bool TokenChooser::choose(const Tensor& logits, const std::vector<PendingSlot>& pending,
                          std::vector<Decision>& decisions) {
  if (batch_.width > 1) return search(logits, pending, decisions);
  return s_.draws() ? sample(logits, pending, decisions) : greedy(logits, pending, decisions);
}

AnswerState TokenChooser::state(const AnswerSlot& s, i64 beam) const {
  return {s.ids[beam], s.n_new, s.limit};
}

// The most likely token of each row, over all parts of the vocabulary.
bool TokenChooser::greedy(const Tensor& logits, const std::vector<PendingSlot>& pending,
                          std::vector<Decision>& out) {
  const LocalScores scores(logits, false);
  std::vector<ScoredToken> best_here;
  for (const PendingSlot& c : pending) {
    ScoredToken best{};
    if (processors_) {
      std::vector<double> row = scores.copy(c.rows[0]);
      process(row, scores.first(), state(batch_.slots[c.slot], 0), s_, t_);
      best = best_tokens<double>(row, scores.first(), 1)[0];
    } else {
      scores.row(c.rows[0], [&](auto row) { best = best_tokens(row, scores.first(), 1)[0]; });
    }
    best_here.push_back(best);
  }
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
  const LocalScores scores(logits, true);
  bool finite = true;
  for (size_t i = 0; first_ && i < pending.size(); ++i) {
    const AnswerSlot& slot = batch_.slots[pending[i].slot];
    const AnswerJob& job = batch_.jobs[slot.job];
    std::vector<double> row = scores.copy(pending[i].rows[0]);
    if (processors_) process(row, 0, state(slot, 0), s_, t_);
    const Choices c = warp(row, s_);
    finite &= !c.ids.empty();
    const double u = uniform(static_cast<u64>(s_.seed), prompts_[job.prompt].ordinal, job.sample, slot.n_new);
    take(pending[i], c.ids.empty() ? 0 : draw(c, u), out[i]);
  }
  return finite;
}

// On the first rank: a slot of one row continues with this token.
void TokenChooser::take(const PendingSlot& c, i32 token, Decision& d) {
  const AnswerSlot& slot = batch_.slots[c.slot];
  const AnswerJob& job = batch_.jobs[slot.job];
  d.tokens = {token};
  d.sources = {0};
  std::vector<i32> fresh(slot.ids[0].end() - slot.n_new, slot.ids[0].end());
  fresh.push_back(token);
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
  a.ids = std::move(fresh);
  if (d.done) batch_.answers[job.prompt][job.sample] = std::move(a);
}

// Beams. A log-probability needs the sum over the whole vocabulary; then each part offers its best tokens.
bool TokenChooser::search(const Tensor& logits, const std::vector<PendingSlot>& pending,
                          std::vector<Decision>& out) {
  const LocalScores scores(logits, false);
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
      if (processors_) process(row, scores.first(), state(batch_.slots[c.slot], static_cast<i64>(b)), s_, t_);
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

#include "generate/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_set>

#include "base/error.h"

namespace redco {

namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

// Tokens that would repeat an n-gram of `ids`.
std::vector<i32> repeating(std::span<const i32> ids, i64 n) {
  std::vector<i32> out;
  const i64 length = static_cast<i64>(ids.size());
  if (length < n) return out;
  const auto tail = ids.last(n - 1);
  for (i64 at = 0; at + n <= length; ++at)
    if (std::equal(tail.begin(), tail.end(), ids.begin() + at)) out.push_back(ids[at + n - 1]);
  return out;
}

}  // namespace

bool has_processors(const GenerationSettings& s, const GenerationTokens& t) {
  return s.repetition_penalty != 1 || s.no_repeat_ngram_size > 0 ||
         (s.min_new_tokens > 0 && !t.eos.empty()) || t.forced_bos || t.forced_eos;
}

void process(std::span<double> scores, i64 first, const AnswerState& at, const GenerationSettings& s,
             const GenerationTokens& t) {
  const i64 end = first + static_cast<i64>(scores.size());
  const auto here = [&](i32 id) { return id >= first && id < end; };
  if (s.repetition_penalty != 1) {
    // Each token once, even if it occurs several times.
    std::unordered_set<i32> seen;
    for (const i32 id : at.ids) {
      if (!here(id) || !seen.insert(id).second) continue;
      double& x = scores[id - first];
      x = x < 0 ? x * s.repetition_penalty : x / s.repetition_penalty;
    }
  }
  if (s.no_repeat_ngram_size > 0)
    for (const i32 id : repeating(at.ids, s.no_repeat_ngram_size))
      if (here(id)) scores[id - first] = kNever;
  if (at.n_new < s.min_new_tokens)
    for (const i32 id : t.eos)
      if (here(id)) scores[id - first] = kNever;
  const auto force = [&](i32 id) {
    std::fill(scores.begin(), scores.end(), kNever);
    if (here(id)) scores[id - first] = 0;
  };
  if (t.forced_bos && at.ids.size() == 1) force(*t.forced_bos);
  if (t.forced_eos && at.n_new + 1 == at.limit) force(*t.forced_eos);
}

Choices warp(std::span<const double> scores, const GenerationSettings& s) {
  const double temperature = s.draws() ? s.temperature : 1.0;
  std::vector<i32> ids;
  ids.reserve(scores.size());
  double top = kNever;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (!(scores[i] > kNever)) continue;
    ids.push_back(static_cast<i32>(i));
    top = std::max(top, scores[i]);
  }
  const auto before = [&](i32 a, i32 b) {
    return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
  };
  if (s.top_k && *s.top_k < static_cast<i64>(ids.size())) {
    std::nth_element(ids.begin(), ids.begin() + (*s.top_k - 1), ids.end(), before);
    const double least = scores[ids[*s.top_k - 1]];
    ids.erase(std::remove_if(ids.begin(), ids.end(), [&](i32 id) { return scores[id] < least; }), ids.end());
  }
  // If a score is infinite, only such tokens can be drawn.
  const auto weight = [&](i32 id) {
    return scores[id] == top ? 1.0 : std::exp((scores[id] - top) / temperature);
  };
  if (s.top_p < 1) {
    double sum = 0;
    for (const i32 id : ids) sum += weight(id);
    // A partial sort is enough: the smallest set of the most likely tokens whose probability reaches top_p.
    double held = 0;
    size_t n = 0, sorted = 0;
    while (n < ids.size() && (n == 0 || held < s.top_p * sum)) {
      if (n == sorted) {
        const size_t more = std::min(ids.size(), std::max<size_t>(64, 4 * sorted));
        std::partial_sort(ids.begin() + sorted, ids.begin() + more, ids.end(), before);
        sorted = more;
      }
      held += weight(ids[n++]);
    }
    ids.resize(n);
  }
  if (s.min_p > 0)
    ids.erase(std::remove_if(ids.begin(), ids.end(), [&](i32 id) { return weight(id) < s.min_p; }),
              ids.end());
  std::sort(ids.begin(), ids.end());
  Choices c;
  double sum = 0;
  for (const i32 id : ids) sum += c.probabilities.emplace_back(weight(id));
  for (double& p : c.probabilities) p /= sum;
  c.ids = std::move(ids);
  return c;
}

i32 draw(const Choices& c, double u) {
  REDCO_CHECK(!c.ids.empty(), "nothing to draw from");
  double held = 0;
  for (size_t i = 0; i < c.ids.size(); ++i) {
    held += c.probabilities[i];
    if (u < held) return c.ids[i];
  }
  return c.ids.back();
}

std::vector<float> sampling_probabilities(std::span<const float> logits, const GenerationSettings& s) {
  const Choices c = warp(std::vector<double>(logits.begin(), logits.end()), s);
  std::vector<float> out(logits.size(), 0.f);
  for (size_t i = 0; i < c.ids.size(); ++i) out[c.ids[i]] = static_cast<float>(c.probabilities[i]);
  return out;
}

template <class T>
std::vector<ScoredToken> best_tokens(std::span<const T> scores, i64 first, i64 k) {
  // A heap whose front is the worst of the k best.
  const auto better = [](const ScoredToken& a, const ScoredToken& b) {
    return a.score > b.score || (a.score == b.score && a.id < b.id);
  };
  std::vector<ScoredToken> best;
  best.reserve(k + 1);
  T least = -std::numeric_limits<T>::infinity();  // once there are k tokens, a new one must be above it
  for (size_t i = 0; i < scores.size() && k > 0; ++i) {
    if (!(scores[i] > least)) continue;
    best.push_back({static_cast<double>(scores[i]), static_cast<i32>(first + static_cast<i64>(i))});
    std::push_heap(best.begin(), best.end(), better);
    if (static_cast<i64>(best.size()) > k) {
      std::pop_heap(best.begin(), best.end(), better);
      best.pop_back();
    }
    if (static_cast<i64>(best.size()) == k) least = static_cast<T>(best.front().score);
  }
  std::sort_heap(best.begin(), best.end(), better);
  best.resize(k, {kNever, -1});
  return best;
}
template std::vector<ScoredToken> best_tokens(std::span<const float>, i64, i64);
template std::vector<ScoredToken> best_tokens(std::span<const double>, i64, i64);

}  // namespace redco

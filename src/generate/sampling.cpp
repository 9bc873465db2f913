#include "generate/sampling.h"

#include <algorithm>
#include <limits>

#include "generate/timestamp_rules.h"
#include "generate/token_draw.h"

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
         (s.min_new_tokens > 0 && !t.eos.empty()) || t.forced_bos || t.forced_eos || !t.suppress.empty() ||
         !t.begin_suppress.empty() || !t.first_among.empty() || t.timestamps;
}

template <class T>
void process(std::span<T> scores, i64 first, const AnswerState& at, const GenerationSettings& s,
             const GenerationTokens& t) {
  const i64 end = first + static_cast<i64>(scores.size());
  const auto here = [&](i32 id) { return id >= first && id < end; };
  if (s.repetition_penalty != 1) {
    // Each token once, even if it occurs several times.
    std::vector<bool> seen(scores.size());
    for (const i32 id : at.ids) {
      if (!here(id) || seen[id - first]) continue;
      seen[id - first] = true;
      T& x = scores[id - first];
      x = static_cast<T>(x < 0 ? x * s.repetition_penalty : x / s.repetition_penalty);
    }
  }
  if (s.no_repeat_ngram_size > 0)
    for (const i32 id : repeating(at.ids, s.no_repeat_ngram_size))
      if (here(id)) scores[id - first] = static_cast<T>(kNever);
  const auto exclude = [&](const std::vector<i32>& ids) {
    for (const i32 id : ids)
      if (here(id)) scores[id - first] = static_cast<T>(kNever);
  };
  if (at.n_new < s.min_new_tokens) exclude(t.eos);
  if (at.n_new == 0) exclude(t.begin_suppress);
  exclude(t.suppress);
  if (at.n_new == 0 && !t.first_among.empty()) {
    std::vector<std::pair<i64, T>> kept;
    for (const i32 id : t.first_among)
      if (here(id)) kept.emplace_back(id - first, scores[id - first]);
    std::fill(scores.begin(), scores.end(), static_cast<T>(kNever));
    for (const auto& [place, score] : kept) scores[place] = score;
  }
  if (t.timestamps) keep_timestamp_order(scores, first, at, *t.timestamps);
  const auto force = [&](i32 id) {
    std::fill(scores.begin(), scores.end(), static_cast<T>(kNever));
    if (here(id)) scores[id - first] = 0;
  };
  if (t.forced_bos && at.ids.size() == 1) force(*t.forced_bos);
  if (t.forced_eos && at.n_new + 1 == at.limit) force(*t.forced_eos);
}
template void process(std::span<float>, i64, const AnswerState&, const GenerationSettings&,
                      const GenerationTokens&);
template void process(std::span<double>, i64, const AnswerState&, const GenerationSettings&,
                      const GenerationTokens&);

std::vector<float> sampling_probabilities(std::span<const float> logits, const GenerationSettings& s) {
  std::vector<float> scores(logits.begin(), logits.end());
  const TokenDraw<float> draw(Context::current().group(Axis::mp), false, {scores}, 0, s);
  const std::vector<double> p = draw.probabilities(0);
  return {p.begin(), p.end()};
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

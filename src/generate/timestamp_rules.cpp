#include "generate/timestamp_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace redco {

template <class T>
void keep_timestamp_order(std::span<T> scores, i64 first, const AnswerState& at, const TimestampTokens& t) {
  // Excludes tokens [begin, end).
  const auto exclude = [&](i64 begin, i64 end) {
    begin = std::max(begin - first, i64{0});
    end = std::min(end - first, static_cast<i64>(scores.size()));
    if (begin < end)
      std::fill(scores.begin() + begin, scores.begin() + end, -std::numeric_limits<T>::infinity());
  };
  constexpr i64 kAll = std::numeric_limits<i32>::max();
  exclude(t.none, t.none + 1);
  const std::span<const i32> ids = at.ids.last(at.n_new);
  if (ids.empty()) {
    exclude(0, t.first);
    if (t.most_first) exclude(t.first + *t.most_first + 1, kAll);
    return;
  }
  const bool last = ids.back() >= t.first, before = ids.size() < 2 || ids[ids.size() - 2] >= t.first;
  if (last && before) exclude(t.first, kAll);
  if (last && !before) exclude(0, t.end);
  for (auto id = ids.rbegin(); id != ids.rend(); ++id)
    if (*id >= t.first) {
      exclude(t.first, last && !before ? *id : *id + 1);
      break;
    }
}
template void keep_timestamp_order(std::span<float>, i64, const AnswerState&, const TimestampTokens&);
template void keep_timestamp_order(std::span<double>, i64, const AnswerState&, const TimestampTokens&);

void prefer_timestamps(LocalScores& scores, const std::vector<i64>& rows, Group& mp,
                       const TimestampTokens& t) {
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  struct Part {
    double text = kNone, peak = kNone, sum = 0;  // the best text token; the sum of exp(time - peak)
  };
  const i64 cut = std::max<i64>(t.first - scores.first(), 0);
  std::vector<Part> here(rows.size());
  for (size_t i = 0; i < rows.size(); ++i)
    scores.row(rows[i], [&](auto row) {
      Part& p = here[i];
      for (i64 k = 0; k < std::ssize(row); ++k) {
        double& most = k < cut ? p.text : p.peak;
        most = std::max(most, static_cast<double>(row[k]));
      }
      for (i64 k = cut; k < std::ssize(row) && p.peak > kNone; ++k)
        p.sum += std::exp(static_cast<double>(row[k]) - p.peak);
    });
  const std::vector<Part> all = gathered(mp, scores.cut(), here);
  for (size_t i = 0; i < rows.size(); ++i) {
    Part whole;
    for (size_t k = i; k < all.size(); k += rows.size()) {
      whole.text = std::max(whole.text, all[k].text);
      whole.peak = std::max(whole.peak, all[k].peak);
    }
    for (size_t k = i; k < all.size(); k += rows.size())
      if (all[k].peak > kNone) whole.sum += all[k].sum * std::exp(all[k].peak - whole.peak);
    if (!(whole.peak > kNone) || !(whole.peak + std::log(whole.sum) > whole.text)) continue;
    scores.row(rows[i], [&](auto row) {
      using T = typename decltype(row)::value_type;
      std::fill_n(row.begin(), std::min<i64>(cut, std::ssize(row)), -std::numeric_limits<T>::infinity());
    });
  }
}

}  // namespace redco

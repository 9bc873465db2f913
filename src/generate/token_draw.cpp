#include "generate/token_draw.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/parallel.h"

namespace redco {

namespace {

constexpr i64 kChunk = 4096;
constexpr int kBuckets = kernels::kScoreBuckets;

i64 parts_of(const Group& g, bool cut) { return cut ? g.size() : 1; }

}  // namespace

// The state of a row's search: tokens of the bucket that holds the threshold.
template <class T>
struct TokenDraw<T>::Search {
  std::vector<T> scores;       // of this part's tokens in the bucket; before the first round, all tokens are
  std::vector<i64> counts;     // of each part
  double above = 0, mass = 0;  // weights of the tokens above the bucket and in it; or their numbers
  double wanted = 0;           // the threshold's token is the first with which `above` reaches it
  bool done = false;
};

template <class T>
template <class F>
void TokenDraw<T>::each_row(F&& f) {
  parallel::for_each(static_cast<i64>(rows_.size()), [&](i64 r) { f(static_cast<std::size_t>(r)); });
}

template <class T>
TokenDraw<T>::TokenDraw(Group& group, bool cut, std::vector<std::span<T>> rows, i64 first,
                        const GenerationSettings& s)
    : group_(group), cut_(cut), first_(first), s_(s), rows_(rows.size()) {
  for (std::size_t r = 0; r < rows.size(); ++r) rows_[r].scores = rows[r];
  find_tops();
  if (s_.top_k) {
    find_threshold(false);
    keep_few();
  }
  if (s_.top_p < 1) find_threshold(true);
  for (Row& r : rows_) r.of.least = static_cast<T>(s_.min_p);
  sum_parts();
}

template <class T>
void TokenDraw<T>::find_tops() {
  constexpr T kMost = std::numeric_limits<T>::max();
  std::vector<kernels::ScoreRange<T>> ranges(rows_.size());
  each_row([&](std::size_t r) {
    const auto x = rows_[r].scores;
    ranges[r] = kernels::range_of_scores(x.data(), static_cast<i64>(x.size()), -kMost);
    if (ranges[r].high > kMost) {  // infinite scores: only such tokens can be drawn
      for (T& v : x) v = v > kMost ? kMost : v;
      ranges[r].high = kMost;
    }
  });
  const auto all = gathered(group_, cut_, ranges);
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    Row& row = rows_[r];
    auto& [high, low] = row.range;
    for (std::size_t k = r; k < all.size(); k += rows_.size()) {
      high = std::max(high, all[k].high);
      low = std::min(low, all[k].low);
    }
    row.empty = !(high >= -kMost);
    row.of = {high, static_cast<T>(1 / temperature()), -kMost, 0};
  }
}

// Raises of.cut to the threshold: the top_k-th score, below which no token stays, or the score with which the
// weights reach top_p of their sum; of the tokens with that score, the tokens not needed get -inf.
template <class T>
void TokenDraw<T>::find_threshold(bool by_mass) {
  using Buckets = kernels::ScoreBuckets<T>;
  const std::size_t n_rows = rows_.size();
  const auto parts = static_cast<std::size_t>(parts_of(group_, cut_));
  const auto rank = cut_ ? static_cast<std::size_t>(group_.rank()) : 0;
  std::vector<Search> searches(n_rows);
  std::vector<kernels::ScoreRange<T>> ranges(n_rows);
  for (std::size_t r = 0; r < n_rows; ++r) {
    const Row& row = rows_[r];
    searches[r].done = row.empty;
    ranges[r] = {row.of.top, std::max(row.range.low, row.of.cut)};
    // Far below the top no weight counts; such tokens share the last bucket.
    if (by_mass) ranges[r].low = std::max(ranges[r].low, row.of.top - static_cast<T>(40 * temperature()));
  }
  for (bool first = true;; first = false) {
    if (!first) {
      each_row([&](std::size_t r) {
        const auto& x = searches[r].scores;
        ranges[r] = kernels::range_of_scores(x.data(), static_cast<i64>(x.size()), rows_[r].of.cut);
      });
      const auto all = gathered(group_, cut_, ranges);
      for (std::size_t r = 0; r < n_rows; ++r) {
        auto& [high, low] = ranges[r];
        for (std::size_t k = r; k < all.size(); k += n_rows) {
          high = std::max(high, all[k].high);
          low = std::min(low, all[k].low);
        }
        if (searches[r].done || high != low) continue;
        rows_[r].of.cut = high;
        searches[r].done = true;
      }
    }
    if (std::ranges::all_of(searches, [](const Search& s) { return s.done; })) break;

    std::vector<double> mass(n_rows * kBuckets), all_mass;
    std::vector<i32> count(n_rows * kBuckets);
    each_row([&](std::size_t r) {
      if (searches[r].done) return;
      const auto x = first ? rows_[r].searched() : std::span<const T>(searches[r].scores);
      kernels::add_to_buckets(x.data(), static_cast<i64>(x.size()), rows_[r].of,
                              Buckets(ranges[r].high, ranges[r].low), by_mass ? &mass[r * kBuckets] : nullptr,
                              &count[r * kBuckets]);
    });
    const auto all_counts = gathered(group_, cut_, count);
    if (by_mass) all_mass = gathered(group_, cut_, mass);
    each_row([&](std::size_t r) {
      Search& search = searches[r];
      if (search.done) return;
      std::vector<double> sums(kBuckets), numbers(kBuckets);
      for (std::size_t p = 0; p < parts; ++p)
        for (std::size_t b = 0; b < kBuckets; ++b) {
          const std::size_t at = (p * n_rows + r) * kBuckets + b;
          numbers[b] += all_counts[at];
          if (by_mass) sums[b] += all_mass[at];
        }
      if (!by_mass) sums = numbers;
      if (first) {
        double total = 0;
        for (const double s : sums) total += s;
        search.wanted = by_mass ? s_.top_p * total : static_cast<double>(*s_.top_k);
      }
      // The bucket with which the sum reaches what is wanted; else the last one that has tokens.
      std::size_t bucket = 0;
      double above = search.above, of_bucket = 0;
      for (std::size_t b = 0; b < kBuckets; ++b) {
        if (numbers[b] == 0) continue;
        bucket = b;
        search.above = above;
        of_bucket = sums[b];
        above += sums[b];
        if (above >= search.wanted) break;
      }
      search.mass = of_bucket;
      search.counts.assign(parts, 0);
      for (std::size_t p = 0; p < parts; ++p)
        search.counts[p] = all_counts[(p * n_rows + r) * kBuckets + bucket];
      const Buckets b(ranges[r].high, ranges[r].low);
      std::vector<T> in_bucket;
      in_bucket.reserve(static_cast<std::size_t>(search.counts[rank]));
      const auto x = first ? rows_[r].searched() : std::span<const T>(search.scores);
      for (const T v : x)
        if (v >= rows_[r].of.cut && b.of(v) == static_cast<int>(bucket)) in_bucket.push_back(v);
      search.scores = std::move(in_bucket);
    });
  }
  if (!by_mass) return;  // as in transformers, tokens as likely as the k-th stay
  each_row([&](std::size_t r) {
    Row& row = rows_[r];
    const Search& search = searches[r];
    if (row.empty) return;
    i64 all = 0, before = 0;
    for (std::size_t p = 0; p < parts; ++p) {
      all += search.counts[p];
      if (p < rank) before += search.counts[p];
    }
    const double each = search.mass / static_cast<double>(all), missing = search.wanted - search.above;
    i64 needed = 1;
    while (needed < all && static_cast<double>(needed) * each < missing) {
      const double more = (missing - static_cast<double>(needed) * each) / each;
      needed +=
          std::clamp<i64>(more < static_cast<double>(all) ? static_cast<i64>(more) : all, 1, all - needed);
    }
    if (needed == all) return;
    i64 kept = std::clamp<i64>(needed - before, 0, search.counts[rank]);
    for (std::size_t i = 0; i < row.searched().size(); ++i) {
      T& v = row.few.empty() ? row.scores[i] : row.few[i];
      if (v == row.of.cut && kept-- <= 0) v = -std::numeric_limits<T>::infinity();
    }
  });
}

// After top-k, the scores that are left, if they are a small share.
template <class T>
void TokenDraw<T>::keep_few() {
  each_row([&](std::size_t r) {
    Row& row = rows_[r];
    const std::size_t most = row.scores.size() / 16;
    for (std::size_t i = 0; i < row.scores.size(); ++i) {
      if (!(row.scores[i] >= row.of.cut)) continue;
      if (row.few.size() == most) {
        row.few.clear();
        row.ids.clear();
        return;
      }
      row.few.push_back(row.scores[i]);
      row.ids.push_back(static_cast<i32>(i));
    }
    if (row.few.empty()) row.few.push_back(-std::numeric_limits<T>::infinity()), row.ids.push_back(0);
  });
}

template <class T>
void TokenDraw<T>::sum_parts() {
  std::vector<double> mine(rows_.size());
  each_row([&](std::size_t r) {
    Row& row = rows_[r];
    const auto x = row.searched();
    for (std::size_t at = 0; at < x.size(); at += kChunk)
      mine[r] += row.sums.emplace_back(kernels::sum_of_weights(
          x.data() + at, std::min<i64>(kChunk, static_cast<i64>(x.size() - at)), row.of));
    row.mine = mine[r];
  });
  const auto all = gathered(group_, cut_, mine);
  const auto rank = cut_ ? static_cast<std::size_t>(group_.rank()) : 0;
  for (std::size_t r = 0; r < rows_.size(); ++r)
    for (std::size_t p = 0; p * rows_.size() < all.size(); ++p) {
      if (p == rank) rows_[r].before = rows_[r].total;
      rows_[r].total += all[p * rows_.size() + r];
    }
}

// The first token with which the sum of this part's weights exceeds the target; else the last one.
template <class T>
i32 TokenDraw<T>::token_at(const Row& row, double target) const {
  const auto x = row.searched();
  std::size_t chunk = 0, last = 0;
  double held = 0;
  for (std::size_t c = 0; c < row.sums.size(); ++c) {
    if (row.sums[c] == 0) continue;
    last = c;
    if (held + row.sums[c] > target) break;
    held += row.sums[c];
  }
  chunk = last;
  const std::size_t begin = chunk * kChunk, n = std::min<std::size_t>(kChunk, x.size() - begin);
  std::vector<T> w(n);
  kernels::weigh(x.data() + begin, static_cast<i64>(n), row.of, w.data());
  std::size_t found = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (w[i] == 0) continue;
    found = i;
    held += static_cast<double>(w[i]);
    if (held > target) break;
  }
  const std::size_t at = begin + found;
  return static_cast<i32>(first_ + (row.few.empty() ? static_cast<i64>(at) : row.ids[at]));
}

template <class T>
std::vector<i32> TokenDraw<T>::draw(std::span<const double> places) const {
  REDCO_CHECK(places.size() == rows_.size(), "{} places for {} rows", places.size(), rows_.size());
  std::vector<i32> mine(rows_.size(), -1);
  parallel::for_each(static_cast<i64>(rows_.size()), [&](i64 i) {
    const Row& row = rows_[static_cast<std::size_t>(i)];
    const double target = places[static_cast<std::size_t>(i)] * row.total;
    // Each part that begins at or before the target answers; the last of them has the token.
    if (row.empty || row.mine == 0 || target < row.before) return;
    mine[static_cast<std::size_t>(i)] = token_at(row, target - row.before);
  });
  const auto all = gathered(group_, cut_, mine);
  std::vector<i32> out(mine.size(), -1);
  for (std::size_t k = 0; k < all.size(); ++k)
    if (all[k] >= 0) out[k % out.size()] = all[k];
  return out;
}

template <class T>
std::vector<double> TokenDraw<T>::probabilities(std::size_t r) const {
  const Row& row = rows_[r];
  std::vector<double> out(row.scores.size(), 0);
  if (row.empty) return out;
  const auto x = row.searched();
  std::vector<T> w(x.size());
  kernels::weigh(x.data(), static_cast<i64>(x.size()), row.of, w.data());
  for (std::size_t i = 0; i < x.size(); ++i)
    if (w[i] != 0) out[row.few.empty() ? i : row.ids[i]] = static_cast<double>(w[i]) / row.total;
  return out;
}

template class TokenDraw<float>;
template class TokenDraw<double>;

}  // namespace redco

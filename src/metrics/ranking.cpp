#include "metrics/ranking.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace redco {

namespace {

constexpr i64 kDepth = 10;

double dot_of(const std::vector<float>& a, const std::vector<float>& b) {
  REDCO_CHECK(a.size() == b.size(), "embeddings of {} and {} numbers", a.size(), b.size());
  double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) sum += static_cast<double>(a[k]) * static_cast<double>(b[k]);
  return sum;
}

double gain(i64 rank) { return 1 / std::log2(static_cast<double>(rank) + 2); }  // rank from 0

}  // namespace

RankingScores ranking_scores(const EmbeddingRows& queries, const EmbeddingRows& candidates,
                             const std::vector<std::vector<std::size_t>>& relevant) {
  REDCO_CHECK(queries.size() == relevant.size(), "{} queries, {} lists of candidates", queries.size(),
              relevant.size());
  RankingScores out;
  std::vector<double> scores(candidates.size());
  for (std::size_t q = 0; q < queries.size(); ++q) {
    const std::vector<std::size_t>& right = relevant[q];
    REDCO_CHECK(!right.empty(), "query {} has no relevant candidate", q);
    for (std::size_t c = 0; c < candidates.size(); ++c) scores[c] = dot_of(queries[q], candidates[c]);
    std::vector<bool> is_right(candidates.size(), false);
    for (const std::size_t c : right) is_right[c] = true;
    // Ranks of the relevant candidates, from 0: first among the others, then among themselves.
    std::vector<i64> ranks;
    for (const std::size_t c : right) {
      i64 before = 0;
      for (std::size_t d = 0; d < candidates.size(); ++d)
        if (!is_right[d] && !(scores[d] < scores[c])) ++before;
      ranks.push_back(before);
    }
    std::ranges::sort(ranks);
    for (std::size_t k = 0; k < ranks.size(); ++k) ranks[k] += static_cast<i64>(k);
    const double n = static_cast<double>(right.size());
    double dcg = 0, ideal = 0;
    for (std::size_t k = 0; k < ranks.size(); ++k) {
      if (ranks[k] < kDepth) dcg += gain(ranks[k]);
      if (static_cast<i64>(k) < kDepth) ideal += gain(static_cast<i64>(k));
      for (const auto& [depth, recall] : {std::pair{i64{1}, &out.recall_1}, std::pair{i64{5}, &out.recall_5},
                                          std::pair{kDepth, &out.recall_10}})
        if (ranks[k] < depth) *recall += 1 / n;
    }
    out.ndcg_10 += dcg / ideal;
    if (ranks[0] < kDepth) out.mrr_10 += 1 / static_cast<double>(ranks[0] + 1);
  }
  const double n = std::max<double>(1, static_cast<double>(queries.size()));
  for (double* x : {&out.ndcg_10, &out.mrr_10, &out.recall_1, &out.recall_5, &out.recall_10}) *x /= n;
  return out;
}

}  // namespace redco

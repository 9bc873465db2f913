#include "metrics/retrieval.h"

#include <algorithm>

#include "base/error.h"

namespace redco {

std::vector<i64> retrieval_ranks(const EmbeddingRows& queries, const EmbeddingRows& candidates,
                                 const std::vector<std::string>& names) {
  const std::size_t n = queries.size();
  REDCO_CHECK(candidates.size() == n && names.size() == n, "{} queries, {} candidates, {} names", n,
              candidates.size(), names.size());
  std::vector<i64> out(n, 0);
  std::vector<double> scores(n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      REDCO_CHECK(queries[i].size() == candidates[j].size(), "embeddings of {} and {} numbers",
                  queries[i].size(), candidates[j].size());
      double sum = 0;
      for (std::size_t k = 0; k < queries[i].size(); ++k)
        sum += static_cast<double>(queries[i][k]) * static_cast<double>(candidates[j][k]);
      scores[j] = sum;
    }
    for (std::size_t j = 0; j < n; ++j)
      if (j != i && names[j] != names[i] && !(scores[j] < scores[i])) ++out[i];
  }
  return out;
}

double recall_at(const std::vector<i64>& ranks, i64 k) {
  if (ranks.empty()) return 0;
  const auto found = std::count_if(ranks.begin(), ranks.end(), [k](i64 rank) { return rank < k; });
  return static_cast<double>(found) / static_cast<double>(ranks.size());
}

}  // namespace redco

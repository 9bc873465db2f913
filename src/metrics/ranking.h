// Ranking metrics of a search by embeddings, as sentence-transformers' InformationRetrievalEvaluator.
#pragma once

#include <string>
#include <vector>

#include "base/types.h"
#include "metrics/retrieval.h"

namespace redco {

// The best candidates of each query are those with the largest dot product. Means over the queries.
struct RankingScores {
  double ndcg_10 = 0;  // with relevance 0 or 1
  double mrr_10 = 0;   // 1 / rank of the first relevant candidate, 0 below rank 10
  double recall_1 = 0, recall_5 = 0, recall_10 = 0;  // share of the relevant candidates among the first k
};

// relevant[q]: indices of the candidates that answer query q, at least one. A candidate with an equal or a
// NaN score counts as ranked before a relevant one. REQUIRES: rows of one length.
RankingScores ranking_scores(const EmbeddingRows& queries, const EmbeddingRows& candidates,
                             const std::vector<std::vector<std::size_t>>& relevant);

}  // namespace redco

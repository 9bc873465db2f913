#include "metrics/ranking.h"

#include <gtest/gtest.h>

#include <cmath>

namespace redco {
namespace {

// Candidates on a line; the query 1 prefers large ones: the order is 3, 2, 1, 0 (of index).
TEST(Ranking, ScoresFollowTheirDefinitions) {
  const EmbeddingRows candidates = {{1}, {2}, {3}, {4}};
  const RankingScores one = ranking_scores({{1}}, candidates, {{3, 1}});  // ranks 1 and 3
  EXPECT_DOUBLE_EQ(one.recall_1, 0.5);
  EXPECT_DOUBLE_EQ(one.recall_5, 1);
  EXPECT_DOUBLE_EQ(one.mrr_10, 1);
  EXPECT_DOUBLE_EQ(one.ndcg_10, (1 + 1 / std::log2(4.0)) / (1 + 1 / std::log2(3.0)));
  const RankingScores two = ranking_scores({{1}, {-1}}, candidates, {{3}, {3}});  // ranks 1 and 4
  EXPECT_DOUBLE_EQ(two.mrr_10, (1 + 0.25) / 2);
  EXPECT_DOUBLE_EQ(two.recall_1, 0.5);
  EXPECT_DOUBLE_EQ(two.ndcg_10, (1 + 1 / std::log2(5.0)) / 2);
}

// Embeddings that are all equal, or not finite, find nothing.
TEST(Ranking, EqualAndBrokenScoresAreLast) {
  const EmbeddingRows same(11, {1});
  EXPECT_EQ(ranking_scores({{1}}, same, {{0}}).recall_10, 0);
  EXPECT_EQ(ranking_scores({{NAN}}, same, {{0}}).ndcg_10, 0);
  EXPECT_EQ(ranking_scores({{NAN}}, same, {{0}}).mrr_10, 0);
}

}  // namespace
}  // namespace redco

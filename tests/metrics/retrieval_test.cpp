#include "metrics/retrieval.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace redco {
namespace {

TEST(Retrieval, RanksCountBetterAndEqualCandidatesOfOtherNames) {
  // Dot products, a row for each query:  1 0.5 0 1;  0.5 1 1.5 0.5;  0 1 2 0;  1 0.5 0 1
  const EmbeddingRows queries = {{1, 0}, {0.5, 1}, {0, 2}, {1, 0}};
  const EmbeddingRows candidates = {{1, 0}, {0.5, 0.75}, {0, 1.5}, {1, 0}};
  EXPECT_EQ(retrieval_ranks(queries, candidates, {"a", "b", "c", "d"}), (std::vector<i64>{1, 1, 0, 1}));
  // Equal captions: the first and the last candidate are both right.
  EXPECT_EQ(retrieval_ranks(queries, candidates, {"a", "b", "c", "a"}), (std::vector<i64>{0, 1, 0, 0}));
  // Embeddings that are all equal retrieve nothing.
  const EmbeddingRows same(3, {1, 1});
  EXPECT_EQ(retrieval_ranks(same, same, {"a", "b", "c"}), (std::vector<i64>{2, 2, 2}));
  // Numbers that are not finite are never right.
  EXPECT_EQ(retrieval_ranks({{NAN}, {1}}, {{1}, {2}}, {"a", "b"}), (std::vector<i64>{1, 0}));
  EXPECT_THROW(retrieval_ranks(same, same, {"a", "b"}), BugError);
}

TEST(Retrieval, RecallIsTheShareOfRanksBelowK) {
  EXPECT_DOUBLE_EQ(recall_at({0, 1, 4, 5}, 1), 0.25);
  EXPECT_DOUBLE_EQ(recall_at({0, 1, 4, 5}, 5), 0.75);
  EXPECT_DOUBLE_EQ(recall_at({}, 1), 0);
}

}  // namespace
}  // namespace redco

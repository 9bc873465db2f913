// Retrieval between two sets of embeddings.
#pragma once

#include <string>
#include <vector>

#include "base/types.h"

namespace redco {

using EmbeddingRows = std::vector<std::vector<float>>;

// For each query, the number of candidates with a dot product at least as high as with the query's candidate,
// which has the same index. Candidates with the same name as the query's own (an equal caption) do not count.
// REQUIRES: equal numbers of queries, candidates and names; rows of one length.
std::vector<i64> retrieval_ranks(const EmbeddingRows& queries, const EmbeddingRows& candidates,
                                 const std::vector<std::string>& names);

// The share of queries whose own candidate is among the first k.
double recall_at(const std::vector<i64>& ranks, i64 k);

}  // namespace redco

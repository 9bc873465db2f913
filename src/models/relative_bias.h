// Relative positions as T5 has them: distances fall into buckets, and each head learns a bias for each bucket
// (Raffel et al. 2020, section 2.1).
#pragma once

#include <vector>

#include "models/config.h"
#include "tensor/tensor.h"

namespace redco {

struct RelativeBuckets {
  i64 count = 32, max_distance = 128;
  bool bidirectional = false;  // half of the buckets for keys after the query; else those share bucket 0
};

// Reads and checks the two keys (32 and 128 where absent).
RelativeBuckets read_relative_buckets(ModelConfig& c, const char* count, const char* max_distance);

// The bucket of a key `distance` tokens after the query. Half of a side's buckets are for one distance each,
// the others grow with its logarithm, all beyond max_distance share the last. In fp32 as transformers
// computes it, so that borders fall alike.
i64 relative_bucket(const RelativeBuckets& b, i64 distance);

// table [buckets, H] -> [1, H, Tq, Tk], the bias of the scores of the last Tq of Tk tokens; cut as the table
// is, along the heads.
Tensor relative_bias(const Tensor& table, const RelativeBuckets& b, i64 Tq, i64 Tk);

}  // namespace redco

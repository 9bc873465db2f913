// T5's relative positions: distances are grouped into buckets, and each head learns a bias per bucket (Raffel
// et al. 2020, section 2.1).
#pragma once

#include <vector>

#include "models/config.h"
#include "tensor/tensor.h"

namespace redco {

struct RelativeBuckets {
  i64 count = 32, max_distance = 128;
  bool bidirectional =
      false;  // true: half of the buckets are for later keys; false: later keys share bucket 0
};

// Reads and checks the two keys (defaults: 32 and 128).
RelativeBuckets read_relative_buckets(ModelConfig& c, const char* count, const char* max_distance);

// The bucket of a key `distance` tokens after the query. Half of a side's buckets hold one distance each, the
// others grow logarithmically, and all distances from max_distance on share the last. Computed in fp32 like
// transformers, so that the borders are equal.
i64 relative_bucket(const RelativeBuckets& b, i64 distance);

// table [buckets, H] -> [1, H, Tq, Tk], the bias of the scores of the last Tq of Tk tokens, sharded along the
// heads like the table.
Tensor relative_bias(const Tensor& table, const RelativeBuckets& b, i64 Tq, i64 Tk);

}  // namespace redco

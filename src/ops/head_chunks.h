// Operands of the linear recurrences with heads in groups, and their cut into chunks of tokens.
#pragma once

#include <string_view>

#include "ops/chunk_decay.h"
#include "ops/recurrence.h"

namespace redco {

// B batch, T tokens, H = G R heads in G groups that share keys and queries, N state size, P head width. In
// fp32 or f64.
struct HeadOperands {
  i64 B, T, H, P, N, G, R;
  Tensor decay;     // [B, T, H]
  Tensor k, q;      // [B, T, G, N]
  Tensor v;         // [B, T, H, P]
  Tensor initial;   // [B, G, R, N, P] or undefined
  Tensor segments;  // [B, T] or undefined
};
// Checks the inputs of `op`. With more shards than groups, heads are cut inside a group: then keys and
// queries are repeated, so that each part has its own.
HeadOperands head_operands(std::string_view op, const RecurrenceInputs& in);

// T tokens as K chunks of L. The padding at the end is 0: a log decay of 0 and a key of 0 leave the state as
// it is.
struct HeadChunks {
  i64 K, L;
  Tensor k, q;  // [B, K, G, 1, L, N]
  Tensor v;     // [B, K, G, R, L, P]
  // Of each token, of the last token of each chunk, and of that of the chunk before: [B, K, 1, 1, L or 1], or
  // undefined.
  Tensor segments, ends, before;
  Tensor total;     // log decay of each chunk in f64: [B, K, G, R, 1]
  Tensor decays;    // between the tokens of each chunk: [B, K, G, R, L, L]
  Tensor to_token;  // from the begin of the chunk up to each token: [B, K, G, R, L, 1]
  Tensor to_end;    // from each token to the end of the chunk: [B, K, G, R, L, 1]

  // t [B, T, H] as [B, K, G, R, L].
  Tensor of_heads(const HeadOperands& o, const Tensor& t) const;
};
HeadChunks head_chunks(const HeadOperands& o, i64 chunk);

}  // namespace redco

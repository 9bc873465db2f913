// Scaled dot-product attention with grouped key/value heads.
#pragma once

#include "tensor/tensor.h"

namespace redco {

struct AttentionOptions {
  double scale = 1;     // of q k^T
  double softcap = 0;   // > 0: scores are softcap * tanh(scale q k^T / softcap), before masks and bias
  bool causal = false;  // query i attends to keys <= i + Tk - Tq
  i64 window = 0;       // > 0: at most this many previous keys (sliding window), the query's own included
  i64 ahead = -1;       // >= 0: at most this many later keys
  i64 kv_length = -1;   // number of keys used of k, v (a cache may be longer); -1: all
  double dropout = 0;   // rate for the probabilities, drawn at coordinates (example, head, query, key)
  u64 dropout_key = 0;
  // Rows with several samples: key_mask holds the sample number of each key (0: padding), and a query attends
  // only to keys of the same sample. The queries are the last Tq of the Tk tokens.
  bool segmented = false;
  // ALiBi (Press et al. 2022): slopes[h] * (j - i) is added to the score of query i and key j, both counted
  // from the end; one slope per head of q. null: none.
  std::shared_ptr<const std::vector<float>> slopes{};
};

// Returns [B, Tq, H, D] for q [B, Tq, H, D], k and v [B, Tk, Hkv, D], where H is a multiple of Hkv. k and v
// of a cache may be bf16; sums have q's type. key_mask:
// [B, Tk] i32 (0: masked key; kv_length columns are enough) or undefined. bias: [1 or B, H, Tq, Tk], added to
// the scaled scores, or undefined. sinks: [1 or B, H], a further score of each head that has no value
// (GPT-OSS), or undefined. A query without keys gets zeros. No Tq x Tk matrix is stored (Dao et al. 2022).
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o,
                 const Tensor& key_mask = {}, const Tensor& bias = {}, const Tensor& sinks = {});
Tensor attention_composed(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o,
                          const Tensor& key_mask = {}, const Tensor& bias = {}, const Tensor& sinks = {});

// Rotary position embedding (Su et al. 2021) of the first 2 * inv_freq.size() of D dims. x [B, T, H, D],
// positions [B, T]. interleaved: rotates the pairs (2i, 2i+1), otherwise (i, i + half).
struct RopeOptions {
  std::shared_ptr<const std::vector<float>> inv_freq;
  bool interleaved = false;
  double attention_factor = 1;  // multiplies cos and sin
};
Tensor rope(const Tensor& x, const Tensor& positions, const RopeOptions& o);

// Sets elements to zero with probability `rate` and scales the others by 1 / (1 - rate). Each draw depends
// only on `key` and the element's global coordinates; dim 0 is counted from Context::random.row_offset. So it
// must be the batch, not the batch merged with other dims.
Tensor dropout(const Tensor& x, double rate, u64 key);

// Writes x [B, T, ...] into cache [B, Tmax, ...] at [start, start + T) of dim 1, in place. The cache has x's
// placement.
void cache_write(const Tensor& cache, const Tensor& x, i64 start);

}  // namespace redco

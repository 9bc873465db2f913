// Scaled dot-product attention with grouped key/value heads.
#pragma once

#include "tensor/tensor.h"

namespace redco {

struct AttentionOptions {
  double scale = 1;     // of q k^T
  double softcap = 0;   // > 0: scores are softcap * tanh(scale q k^T / softcap), before masks and bias
  bool causal = false;  // query i sees keys <= i + Tk - Tq
  i64 window = 0;       // > 0: at most that many keys back (sliding window)
  i64 kv_length = -1;   // keys used of k, v (a cache is longer); -1: all
  double dropout = 0;   // of the probabilities, drawn at coordinates (example, head, query, key)
  u64 dropout_key = 0;
  // key_mask holds sample numbers (0: padding) of rows with several samples, Tq = Tk: a query sees the keys
  // of its own number only.
  bool segmented = false;
};

// q [B, Tq, H, D], k and v [B, Tk, Hkv, D], H a multiple of Hkv; key_mask [B, Tk] i32 (0: nobody sees it;
// kv_length columns are enough) or undefined; bias [1 or B, H, Tq, Tk] added to the scaled scores, or
// undefined. -> [B, Tq, H, D]. A query that sees nothing gets zeros. No Tq x Tk matrix is kept (Dao et al.
// 2022).
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o,
                 const Tensor& key_mask = {}, const Tensor& bias = {});
Tensor attention_composed(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o,
                          const Tensor& key_mask = {}, const Tensor& bias = {});

// Rotary positions (Su et al. 2021) on the first 2 * inv_freq.size() of D dims. x [B, T, H, D], positions [B,
// T]. interleaved: pairs (2i, 2i+1), else (i, i + half).
struct RopeOptions {
  std::shared_ptr<const std::vector<float>> inv_freq;
  bool interleaved = false;
  double attention_factor = 1;  // multiplies cos and sin
};
Tensor rope(const Tensor& x, const Tensor& positions, const RopeOptions& o);

// Zeroes elements with probability `rate`, scales the rest by 1 / (1 - rate). The draw of an element is a
// function of `key` and its global coordinates, dim 0 counted from Context::random.row_offset.
Tensor dropout(const Tensor& x, double rate, u64 key);

// Writes x [B, T, ...] into cache [B, Tmax, ...] at [start, start + T) of dim 1, in place. The cache has x's
// placement.
void cache_write(const Tensor& cache, const Tensor& x, i64 start);

}  // namespace redco

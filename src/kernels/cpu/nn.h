// Kernels of transformer layers: norms, softmax, attention, rotary position embedding, embedding,
// cross-entropy, dropout. B batch, T tokens, H heads, D head width, C channels, V vocabulary, R rows. T
// (type) is float or double; X, Y and G (types of activations) are T, or bf16 where T is float; fp32
// statistics are accumulated in fp32 or better. Arrays are contiguous unless strides are given. Sizes may be
// zero.
//
// Callers allocate the memory that a kernel needs in addition to inputs and outputs: `workspace` has
// NAME_workspace() elements of T, uninitialized, and may be null if that is 0. The number depends on shapes
// and on the number of threads.
#pragma once

#include "kernels/arguments.h"

namespace redco::kernels {

// ---- Norms ----
// y[R,C] = (x - mean) * rstd * w + b; w and b may be null (1 and 0). Writes mean[R] and rstd[R] for the
// backward.
template <class T, class X, class Y>
void layer_norm(const X* x, const T* w, const T* b, T eps, Y* y, T* mean, T* rstd, i64 R, i64 C);
// Overwrites dx[R,C], dw[C], db[C] (dw, db null: not computed). Sums over rows are in chunks that depend only
// on R.
template <class T, class X, class G>
void layer_norm_backward(const X* x, const T* w, const T* mean, const T* rstd, const G* g, X* dx, T* dw,
                         T* db, i64 R, i64 C, T* workspace);
// `gradients`: how many of dw and db are computed.
i64 norm_backward_workspace(i64 R, i64 C, int gradients);
// y = x * rstd * w, rstd = 1 / sqrt(mean(x^2) + eps)   (Zhang & Sennrich 2019)
template <class T, class X, class Y>
void rms_norm(const X* x, const T* w, T eps, Y* y, T* rstd, i64 R, i64 C);
template <class T, class X, class G>
void rms_norm_backward(const X* x, const T* w, const T* rstd, const G* g, X* dx, T* dw, i64 R, i64 C,
                       T* workspace);

// ---- Softmax ----
// Over the last dim. A row of all -inf becomes zeros.
template <class T>
void softmax(const T* x, T* y, i64 R, i64 C);
template <class T>
void log_softmax(const T* x, T* y, i64 R, i64 C);  // a row of all -inf becomes NaN
template <class T>
void log_softmax_backward(const T* y, const T* g, T* dx, i64 R, i64 C);  // g - exp(y) * sum(g)

// ---- Attention (Dao et al. 2022: online softmax without a Tq x Tk matrix) ----
struct AttentionShape {
  i64 B, Tq, Tk, H, Hkv, D;  // H % Hkv == 0; head h uses k/v head h / (H / Hkv)
  // Row strides in elements between consecutive tokens of q, k, v. Heads are D apart, batches T * stride
  // apart (k, v: k_batch_stride, v_batch_stride, so that a cache longer than Tk can be read).
  i64 q_stride, k_stride, v_stride, k_batch_stride, v_batch_stride;
};
struct AttentionArgs {
  double scale = 1;
  double softcap = 0;              // > 0: scores are softcap * tanh(scale q k^T / softcap)
  bool causal = false;             // query i attends to keys <= i + Tk - Tq
  i64 window = 0;                  // > 0: and to keys > i + Tk - Tq - window (sliding window)
  i64 ahead = -1;                  // >= 0: and to keys <= i + Tk - Tq + ahead
  const i32* key_mask = nullptr;   // [B,Tk]; 0: no query attends to the key
  const i32* q_segment = nullptr;  // [B,Tq] with k_segment [B,Tk]: attention stays within a segment
  const i32* k_segment = nullptr;
  i64 q_segment_stride = 0;  // between the rows of q_segment; 0: Tq
  // T[bias_B, bias_H, Tq, Tk] with bias_B in {1, B}, bias_H in {1, H}; added to the scores.
  const void* bias = nullptr;
  i64 bias_B = 0, bias_H = 0;
  const float* slopes = nullptr;  // [H]: slopes[h] * (j - i - Tk + Tq) is added to the scores
  // T[sinks_B, H] with sinks_B in {1, B}: a further score of each head, without a value. out and lse count
  // it. The backward only needs to know that there are some.
  const void* sinks = nullptr;
  i64 sinks_B = 0;
  // Dropout of the probabilities: key, rate and the global offsets of batch and head on this rank (see
  // dropout below). The coordinates of an element are (batch, head, query, key).
  double dropout = 0;
  u64 dropout_key = 0;
  i64 batch_offset = 0, head_offset = 0;
};
// out[B,Tq,H,D] contiguous; lse[B,H,Tq] = log sum exp of the scores (-inf for a query without keys and
// sinks; its out is 0). Sums are in T. Q, the type of q and out, and KV, that of keys and values, are T or
// bf16; a bf16 q has more than one query and bf16 keys.
template <class T, class Q, class KV>
void attention(const AttentionShape& s, const AttentionArgs& a, const Q* q, const KV* k, const KV* v, Q* out,
               T* lse, T* workspace);
i64 attention_workspace(const AttentionShape& s, const AttentionArgs& a, bool bf16_q, bool bf16_k);
// dq, dk, dv contiguous [B,Tq,H,D], [B,Tk,Hkv,D]; dbias null or T[bias_B,bias_H,Tq,Tk] overwritten.
template <class T, class X>
void attention_backward(const AttentionShape& s, const AttentionArgs& a, const X* q, const X* k, const X* v,
                        const X* out, const T* lse, const X* g, X* dq, X* dk, X* dv, T* dbias, T* workspace);
i64 attention_backward_workspace(const AttentionShape& s, bool bf16);

// ---- Rotary position embedding (Su et al. 2021) ----
// x[B,T,H,D] -> y. Rotates the first `rotary` of D dims by the angle position * inv_freq[rotary/2] and copies
// the rest. interleaved: pairs (2i, 2i+1) (GPT-J), else (i, i + rotary/2) (LLaMA). positions[B,T]; sign -1 is
// the inverse. cos and sin are multiplied by attention_factor. Angles are fp32 products, as in PyTorch.
template <class X>
void rope(const X* x, const i32* positions, const float* inv_freq, i64 rotary, bool interleaved, int sign,
          double attention_factor, X* y, i64 B, i64 T_, i64 H, i64 D);

// ---- Embedding ----
// out[R,C] = table[ids[r] - first, :] for ids in [first, first + rows), else 0.
template <class T>
void embedding(const T* table, i64 first, i64 rows, const i32* ids, T* out, i64 R, i64 C);
// out[rows,C] = sum over r with ids[r] - first == row of g[r,:], overwritten. Sums are in the order of r
// (same bits).
template <class T>
void scatter_rows(const T* g, const i32* ids, i64 first, i64 rows, T* out, i64 R, i64 C);
// out[r] = x[r, ids[r] - first]; 0 outside [first, first + C).
template <class T>
void pick(const T* x, const i32* ids, i64 first, T* out, i64 R, i64 C);
// out[R,C] = 0, then out[r, ids[r] - first] = g[r] where inside.
template <class T>
void unpick(const T* g, const i32* ids, i64 first, T* out, i64 R, i64 C);

// ---- Cross-entropy over a sharded vocabulary ----
// max_out[R]: maximum of each row (-inf for C == 0).
template <class T, class X>
void row_max(const X* x, T* max_out, i64 R, i64 C);
// sum_exp[R] = sum exp(x - max), target[R] = x[r, ids[r] - first] (0 where outside or ids[r] < 0).
template <class T, class X>
void sum_exp_and_target(const X* x, const T* max, const i32* ids, i64 first, T* sum_exp, T* target, i64 R,
                        i64 C);
// lse[R] = max + log(sum_exp); loss[R] = lse - target, 0 where ids[r] < 0 (ignored labels).
template <class T>
void cross_entropy(const T* max, const T* sum_exp, const T* target, const i32* ids, T* loss, T* lse, i64 R);
// dx[r,c] = (exp(x - lse[r]) - (c + first == ids[r])) * g[r]; rows with ids[r] < 0 get 0 (ignored labels).
template <class T, class X>
void cross_entropy_backward(const X* x, const T* lse, const i32* ids, i64 first, const T* g, X* dx, i64 R,
                            i64 C);

// ---- Randomness: Philox4x32-10 (Salmon et al. 2011) ----
// Word 0 of Philox for (key, coordinates) as u32; the uniform number is (word >> 8) * 2^-24.
void philox_uniform(u64 key, const Block4& b, float* out);
void philox_normal(u64 key, const Block4& b, float* out);  // Box-Muller of words 0 and 1
// y = keep ? x / (1 - rate) : 0, where keep is uniform >= rate.
template <class T>
void dropout(const T* x, T* y, double rate, u64 key, const Block4& b);

}  // namespace redco::kernels

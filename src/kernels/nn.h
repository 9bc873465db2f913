// Kernels of transformer layers: norms, softmax, attention, rotary positions, embedding, cross-entropy,
// dropout. B batch, T tokens, H heads, D head width, C channels, V vocabulary, R rows. T (type) is float or
// double; fp32 statistics are accumulated in fp32 or better. All arrays contiguous unless strides are given.
// Zero sizes are legal.
//
// Memory that some need beside inputs and outputs is the caller's: `workspace` has as many elements of T as
// NAME_workspace() says, uninitialized. It may be null where that is 0. The number depends on shapes alone,
// not on the number of threads. (A thread's scratch of constant size is the kernel's own.)
#pragma once

#include "base/types.h"

namespace redco::kernels {

// ---- norms
// ------------------------------------------------------------------------------------------------- y[R,C] =
// (x - mean) * rstd * w + b; w, b may be null (1, 0). mean[R], rstd[R] are written for the backward.
template <class T>
void layer_norm(const T* x, const T* w, const T* b, T eps, T* y, T* mean, T* rstd, i64 R, i64 C);
// dx[R,C]; dw[C], db[C] (null: not wanted) are overwritten, summed over rows in chunks fixed by R.
template <class T>
void layer_norm_backward(const T* x, const T* w, const T* mean, const T* rstd, const T* g, T* dx, T* dw,
                         T* db, i64 R, i64 C, T* workspace);
// For `gradients` of dw, db.
i64 norm_backward_workspace(i64 R, i64 C, int gradients);
// y = x * rstd * w, rstd = 1 / sqrt(mean(x^2) + eps)   (Zhang & Sennrich 2019)
template <class T>
void rms_norm(const T* x, const T* w, T eps, T* y, T* rstd, i64 R, i64 C);
template <class T>
void rms_norm_backward(const T* x, const T* w, const T* rstd, const T* g, T* dx, T* dw, i64 R, i64 C,
                       T* workspace);

// ---- softmax
// ----------------------------------------------------------------------------------------------- Over the
// last dim. A row of all -inf becomes zeros.
template <class T>
void softmax(const T* x, T* y, i64 R, i64 C);
template <class T>
void softmax_backward(const T* y, const T* g, T* dx, i64 R, i64 C);  // y * (g - sum(g * y))

// ---- attention (Dao et al. 2022: online softmax, no Tq x Tk matrix kept)
// -----------------------------------
struct AttentionShape {
  i64 B, Tq, Tk, H, Hkv, D;  // H % Hkv == 0; head h reads k/v head h / (H / Hkv)
  // Row strides in elements between consecutive tokens of q, k, v; heads are D apart, batches T * stride
  // apart (k, v: k_batch_stride, so that a cache longer than Tk can be read).
  i64 q_stride, k_stride, v_stride, k_batch_stride, v_batch_stride;
};
struct AttentionArgs {
  double scale = 1;
  double softcap = 0;              // > 0: scores are softcap * tanh(scale q k^T / softcap)
  bool causal = false;             // query i sees keys <= i + Tk - Tq
  i64 window = 0;                  // > 0: and keys > i + Tk - Tq - window (sliding window)
  const i32* key_mask = nullptr;   // [B,Tk], 0 = not visible to any query
  const i32* q_segment = nullptr;  // [B,Tq] with k_segment [B,Tk]: only equal segments see each other
  const i32* k_segment = nullptr;
  const void* bias =
      nullptr;  // T[bias_B, bias_H, Tq, Tk], bias_B in {1, B}, bias_H in {1, H}: added to scores
  i64 bias_B = 0, bias_H = 0;
  // Dropout on the probabilities: key, rate and this rank's global offsets of batch and head (see dropout
  // below); the element's coordinates are (batch, head, query, key).
  double dropout = 0;
  u64 dropout_key = 0;
  i64 batch_offset = 0, head_offset = 0;
};
// out[B,Tq,H,D] contiguous; lse[B,H,Tq] = log sum exp of the scores (-inf where nothing is visible: out is 0
// there).
template <class T>
void attention(const AttentionShape& s, const AttentionArgs& a, const T* q, const T* k, const T* v, T* out,
               T* lse, T* workspace);
i64 attention_workspace(const AttentionShape& s, const AttentionArgs& a);
// dq, dk, dv contiguous [B,Tq,H,D], [B,Tk,Hkv,D]; dbias null or T[bias_B,bias_H,Tq,Tk] overwritten.
template <class T>
void attention_backward(const AttentionShape& s, const AttentionArgs& a, const T* q, const T* k, const T* v,
                        const T* out, const T* lse, const T* g, T* dq, T* dk, T* dv, T* dbias, T* workspace);
i64 attention_backward_workspace(const AttentionShape& s);

// ---- rotary positions (Su et al. 2021)
// --------------------------------------------------------------------- x[B,T,H,D] -> y; the first `rotary`
// of D dims turn by angle position * inv_freq[rotary/2], the rest are copied. interleaved: pairs (2i, 2i+1)
// (GPT-J), else (i, i + rotary/2) (LLaMA). positions[B,T]; sign -1 inverts. cos and sin are multiplied by
// attention_factor. Angles are computed in double or fp32 as PyTorch does: fp32 product.
template <class T>
void rope(const T* x, const i32* positions, const float* inv_freq, i64 rotary, bool interleaved, int sign,
          double attention_factor, T* y, i64 B, i64 T_, i64 H, i64 D);

// ---- embedding
// --------------------------------------------------------------------------------------------- out[R,C] =
// table[ids[r] - first, :] for ids in [first, first + rows), else 0.
template <class T>
void embedding(const T* table, i64 first, i64 rows, const i32* ids, T* out, i64 R, i64 C);
// out[rows,C] = sum over r with ids[r] - first == row of g[r,:]; overwritten; order of r is kept (same bits).
template <class T>
void scatter_rows(const T* g, const i32* ids, i64 first, i64 rows, T* out, i64 R, i64 C);
// out[r] = x[r, ids[r] - first], 0 where outside [first, first + C).
template <class T>
void pick(const T* x, const i32* ids, i64 first, T* out, i64 R, i64 C);
// out[R,C] = 0, out[r, ids[r] - first] = g[r] where inside.
template <class T>
void unpick(const T* g, const i32* ids, i64 first, T* out, i64 R, i64 C);

// ---- cross-entropy over a sharded vocabulary
// --------------------------------------------------------------- max_out[R]: the row's maximum (-inf for C
// == 0).
template <class T>
void row_max(const T* x, T* max_out, i64 R, i64 C);
// sum_exp[R] = sum exp(x - max), target[R] = x[r, ids[r] - first] (0 where outside or ids[r] < 0).
template <class T>
void sum_exp_and_target(const T* x, const T* max, const i32* ids, i64 first, T* sum_exp, T* target, i64 R,
                        i64 C);
// dx[r,c] = (exp(x - lse[r]) - (c + first == ids[r])) * g[r]; rows with ids[r] < 0 get 0 (ignored labels).
// smoothing e > 0: target is (1-e) onehot + e / V_global.
template <class T>
void cross_entropy_backward(const T* x, const T* lse, const i32* ids, i64 first, const T* g, T* dx, i64 R,
                            i64 C, T smoothing, i64 V_global);

// ---- randomness: Philox4x32-10 (Salmon et al. 2011), counter = the element's global coordinates
// ------------ A tensor's local block inside its global shape: element i of the block has coordinates offset
// + index, up to 4 dims (fewer: the leading ones are 0; more: the caller merges).
struct Block4 {
  i64 offset[4];
  i64 size[4];
};
// Philox output for (key, coordinates): word 0 as uint32. Uniforms are (word >> 8) * 2^-24.
void philox_uniform(u64 key, const Block4& b, float* out);
void philox_normal(u64 key, const Block4& b, float* out);  // Box-Muller of words 0 and 1
// y = keep ? x / (1 - rate) : 0; keep iff uniform >= rate.
template <class T>
void dropout(const T* x, T* y, double rate, u64 key, const Block4& b);
u32 philox_word(u64 key, i64 c0, i64 c1, i64 c2, i64 c3);

// ---- AdamW (Loshchilov & Hutter 2019), fp32, in place
// ------------------------------------------------------ m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; p -= lr
// * wd * p; p -= lr / bias1 * m / (sqrt(v / bias2) + eps) in PyTorch's order of operations; g is multiplied
// by grad_scale first.
struct AdamW {
  // In double: 1 - beta2 computed from an fp32 0.999 is off by 1e-5.
  double lr, beta1, beta2, eps, weight_decay, bias1, bias2, grad_scale;  // bias1 = 1 - beta1^step
};
void adamw(const AdamW& h, float* p, const float* g, float* m, float* v, i64 n);

}  // namespace redco::kernels

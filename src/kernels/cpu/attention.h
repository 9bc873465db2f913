// Shared by attention and its backward: the rows of a head, and the key blocks that a query block attends to.
#pragma once

#include <algorithm>
#include <bit>
#include <type_traits>

#include "base/error.h"
#include "kernels/cpu/blas.h"
#include "kernels/cpu/dropout.h"
#include "kernels/cpu/isa/ranges.h"
#include "kernels/cpu/nn.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/products/dot_product.h"
#include "kernels/cpu/products/limits.h"
#include "kernels/isa.h"

namespace redco::kernels {

constexpr i64 kQueryBlock = 64, kKeyBlock = kMaxScoreColumns;  // a block of scores is 32 KB of fp32

inline void check_attention(const AttentionShape& s, const AttentionArgs& a) {
  REDCO_CHECK(s.Hkv > 0 ? s.H % s.Hkv == 0 : s.H == 0, "{} heads share {} key heads", s.H, s.Hkv);
  REDCO_CHECK(a.softcap == 0 || !a.bias, "attention with softcap does not support a bias");
  REDCO_CHECK(!a.q_segment == !a.k_segment, "q_segment and k_segment must both be given or both be null");
  REDCO_CHECK(!a.sinks || a.sinks_B == 1 || a.sinks_B == s.B, "sinks of {} rows for B={}", a.sinks_B, s.B);
  REDCO_CHECK(!a.bias || ((a.bias_B == 1 || a.bias_B == s.B) && (a.bias_H == 1 || a.bias_H == s.H)),
              "bias [{}, {}] for B={} H={}", a.bias_B, a.bias_H, s.B, s.H);
}

// The fields of a block that depend only on batch b and head h.
template <class T>
ScoreBlock<T> score_block(const AttentionShape& s, const AttentionArgs& a, i64 b, i64 h) {
  ScoreBlock<T> k{};
  k.shift = s.Tk - s.Tq;
  k.causal = a.causal;
  k.window = a.window;
  k.ahead = a.ahead;
  k.scale = static_cast<T>(a.scale);
  k.softcap = static_cast<T>(a.softcap);
  k.key_mask = a.key_mask ? a.key_mask + b * s.Tk : nullptr;
  k.q_segment =
      a.q_segment ? a.q_segment + b * (a.q_segment_stride > 0 ? a.q_segment_stride : s.Tq) : nullptr;
  k.k_segment = a.k_segment ? a.k_segment + b * s.Tk : nullptr;
  if (a.bias) {
    const i64 cell = (a.bias_B == 1 ? 0 : b) * a.bias_H + (a.bias_H == 1 ? 0 : h);
    k.bias = static_cast<const T*>(a.bias) + cell * s.Tq * s.Tk;
    k.bias_ld = s.Tk;
  }
  if (a.slopes) k.slope = static_cast<T>(a.slopes[h]);
  k.drop_below = drop_threshold(a.dropout);
  k.keep_scale = static_cast<T>(1 / (1 - a.dropout));
  k.key = a.dropout_key;
  k.c0 = static_cast<u32>(a.batch_offset + b);
  k.c1 = static_cast<u32>(a.head_offset + h);
  return k;
}

struct Range {
  i64 begin, end;
};
// The keys that causality and the window allow for at least one of the queries [q0, q1).
inline Range keys_of(const AttentionShape& s, const AttentionArgs& a, i64 q0, i64 q1) {
  const i64 shift = s.Tk - s.Tq;
  Range r{0, s.Tk};
  if (a.causal) r.end = std::clamp<i64>(q1 + shift, 0, s.Tk);
  if (a.ahead >= 0) r.end = std::min(r.end, std::clamp<i64>(q1 + shift + a.ahead, 0, s.Tk));
  if (a.window > 0) r.begin = std::clamp<i64>(q0 + shift - a.window + 1, 0, r.end);
  return r;
}

inline void widen(const bf16* x, float* y, i64 n) {
  REDCO_ISA_CALL(from_bf16(reinterpret_cast<const u16*>(x), y, n));
}
inline void store(const float* x, bf16* y, i64 n) {
  REDCO_ISA_CALL(to_bf16(x, reinterpret_cast<u16*>(y), n));
}
inline void widen(const bf16* x, double* y, i64 n) {
  for (i64 i = 0; i < n; ++i) y[i] = std::bit_cast<float>(static_cast<u32>(x[i].bits) << 16);
}

// Whether products read queries, keys, values and gradients stored in bf16 without conversion, and
// probabilities rounded to bf16; if not, all are widened. That was not measured with AMX, so it is off there.
inline bool multiplies_stored(const AttentionShape& s, bool bf16) {
  static_assert(std::max(kQueryBlock, kKeyBlock) <= DotProduct::kDeepest);
  return s.D > 0 && s.D <= DotProduct::kDeepest && unit_of(bf16) == Unit::dot;
}

// c[m,n] = alpha op(a) op(b) + beta c on the calling thread, for the small products of a block. B is T or
// bf16. Products of many rows read a bf16 matrix from `widened`, which has room for it.
template <class T, class B>
void block_gemm(bool ta, bool tb, i64 m, i64 n, i64 k, T alpha, const T* a, i64 lda, const B* b, i64 ldb,
                T beta, T* c, i64 ldc, T* widened = nullptr) {
  if (m == 0 || n == 0 || k == 0) return;
  if (m <= kFewRows && !ta) {
    if (tb)
      REDCO_ISA_CALL(rows_times_bt(m, n, k, alpha, a, lda, b, ldb, beta, c, ldc));
    else
      REDCO_ISA_CALL(rows_times_b(m, n, k, alpha, a, lda, b, ldb, beta, c, ldc));
    return;
  }
  if constexpr (std::is_same_v<T, B>) {
    cblas_gemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  } else {
    const i64 rows = tb ? n : k, cols = tb ? k : n;
    for (i64 r = 0; r < rows; ++r) widen(b + r * ldb, widened + r * cols, cols);
    cblas_gemm(ta, tb, m, n, k, alpha, a, lda, widened, cols, beta, c, ldc);
  }
}

}  // namespace redco::kernels

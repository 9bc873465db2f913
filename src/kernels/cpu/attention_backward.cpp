// Gradients of attention. The probabilities P of a block are computed again from lse, then
//   dv += P^T g,  dP = g v^T,  dS = P (dP - delta),  dq += scale dS k,  dk += scale dS^T q,
//   delta = sum_d(g out).
// With dropout, the same mask and scale apply to P in dv and to dP; delta does not change.
#include <limits>
#include <memory>

#include "kernels/cpu/attention.h"

namespace redco::kernels {
namespace {

// One head. The caller sets dq, dk, dv to zero; their rows are dq_ld and dkv_ld apart. ds_sum: null, or [Tq,
// Tk] to which dS is added.
template <class T>
struct Head {
  const T *q, *k, *v, *out, *g, *lse;
  T *dq, *dk, *dv;
  i64 o_ld, dkv_ld;  // row strides of out, g and dq, and of dk and dv
  T* ds_sum;
};

template <class T>
void head_backward(const AttentionShape& s, const AttentionArgs& a, ScoreBlock<T> block, const Head<T>& x) {
  const auto scratch =
      std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(2 * kQueryBlock * kKeyBlock));
  block.s = scratch.get();
  block.ld = kKeyBlock;
  T* const ds = scratch.get() + kQueryBlock * kKeyBlock;
  T delta[kQueryBlock];
  const T scale = block.scale;
  for (i64 q0 = 0; q0 < s.Tq; q0 += kQueryBlock) {
    const i64 rows = std::min(kQueryBlock, s.Tq - q0);
    block.q0 = q0;
    block.rows = rows;
    const T *q = x.q + q0 * s.q_stride, *g = x.g + q0 * x.o_ld, *out = x.out + q0 * x.o_ld;
    for (i64 i = 0; i < rows; ++i) delta[i] = REDCO_ISA_CALL(dot(g + i * x.o_ld, out + i * x.o_ld, s.D));
    const Range keys = keys_of(s, a, q0, q0 + rows);
    block.whole_rows = keys.begin / kKeyBlock == (std::max(keys.end, keys.begin + 1) - 1) / kKeyBlock;
    for (i64 k0 = keys.begin / kKeyBlock * kKeyBlock; k0 < keys.end; k0 += kKeyBlock) {
      const i64 cols = std::min(kKeyBlock, keys.end - k0);
      block.k0 = k0;
      block.cols = cols;
      const T *k = x.k + k0 * s.k_stride, *v = x.v + k0 * s.v_stride;
      block_gemm<T>(false, true, rows, cols, s.D, 1, q, s.q_stride, k, s.k_stride, 0, block.s, block.ld);
      block_gemm<T>(false, true, rows, cols, s.D, 1, g, x.o_ld, v, s.v_stride, 0, ds, block.ld);
      if (s.D == 0) std::fill(scratch.get(), scratch.get() + 2 * kQueryBlock * kKeyBlock, T(0));
      REDCO_ISA_CALL(attend_block_backward(block, x.lse + q0, delta, ds));
      block_gemm<T>(true, false, cols, s.D, rows, 1, block.s, block.ld, g, x.o_ld, 1, x.dv + k0 * x.dkv_ld,
                    x.dkv_ld);
      block_gemm<T>(false, false, rows, s.D, cols, scale, ds, block.ld, k, s.k_stride, 1, x.dq + q0 * x.o_ld,
                    x.o_ld);
      block_gemm<T>(true, false, cols, s.D, rows, scale, ds, block.ld, q, s.q_stride, 1, x.dk + k0 * x.dkv_ld,
                    x.dkv_ld);
      if (x.ds_sum)
        for (i64 i = 0; i < rows; ++i)
          REDCO_ISA_CALL(axpy(T(1), ds + i * block.ld, x.ds_sum + (q0 + i) * s.Tk + k0, cols));
    }
  }
}

}  // namespace

i64 attention_backward_workspace(const AttentionShape& s) {
  return s.H > s.Hkv ? 2 * s.B * s.H * s.Tk * s.D : 0;
}

template <class T>
void attention_backward(const AttentionShape& s, const AttentionArgs& a, const T* q, const T* k, const T* v,
                        const T* out, const T* lse, const T* g, T* dq, T* dk, T* dv, T* dbias, T* workspace) {
  check_attention(s, a);
  REDCO_CHECK(!dbias || a.bias, "dbias is given, but there is no bias");
  const i64 o_ld = s.H * s.D, kv_size = s.B * s.Tk * s.Hkv * s.D, shared = s.Hkv ? s.H / s.Hkv : 1;
  for_blocks(s.B * s.Tq * o_ld, [&](i64 i, i64 end) { std::fill(dq + i, dq + end, T(0)); });
  for_blocks(kv_size, [&](i64 i, i64 end) {
    std::fill(dk + i, dk + end, T(0));
    std::fill(dv + i, dv + end, T(0));
  });
  const i64 bias_cells = dbias ? a.bias_B * a.bias_H : 0;
  for_blocks(bias_cells * s.Tq * s.Tk, [&](i64 i, i64 end) { std::fill(dbias + i, dbias + end, T(0)); });
  if (s.B * s.Tq * s.H * s.Tk == 0) return;

  // If query heads share a key head, each query head gets separate dk and dv, [B, H, Tk, D] twice, which are
  // added in order at the end.
  const i64 own = shared > 1 ? s.B * s.H * s.Tk * s.D : 0;
  for_blocks(2 * own, [&](i64 i, i64 end) { std::fill(workspace + i, workspace + end, T(0)); });
  const auto run = [&](i64 b, i64 h) {
    const i64 hkv = h / shared, at = b * s.Tq * o_ld + h * s.D;
    Head<T> x{q + b * s.Tq * s.q_stride + h * s.D,
              k + b * s.k_batch_stride + hkv * s.D,
              v + b * s.v_batch_stride + hkv * s.D,
              out + at,
              g + at,
              lse + (b * s.H + h) * s.Tq,
              dq + at,
              dk + (b * s.Tk * s.Hkv + hkv) * s.D,
              dv + (b * s.Tk * s.Hkv + hkv) * s.D,
              o_ld,
              s.Hkv * s.D,
              nullptr};
    if (shared > 1) {
      x.dk = workspace + (b * s.H + h) * s.Tk * s.D;
      x.dv = x.dk + own;
      x.dkv_ld = s.D;
    }
    if (dbias)
      x.ds_sum = dbias + ((a.bias_B == 1 ? 0 : b) * a.bias_H + (a.bias_H == 1 ? 0 : h)) * s.Tq * s.Tk;
    head_backward(s, a, score_block<T>(s, a, b, h), x);
  };
  // Heads that add to the same bias run one after the other.
  const bool over_b = dbias && a.bias_B == 1, over_h = dbias && a.bias_H == 1;
  const i64 cells_b = over_b ? 1 : s.B, cells_h = over_h ? 1 : s.H;
  for_each_dynamic(cells_b * cells_h, s.B * s.H * s.Tq * s.Tk * (1 + s.D / 4), [&](i64 t) {
    const i64 b0 = t / cells_h, h0 = t % cells_h;
    for (i64 b = b0; b < (over_b ? s.B : b0 + 1); ++b)
      for (i64 h = h0; h < (over_h ? s.H : h0 + 1); ++h) run(b, h);
  });

  if (shared > 1)
    for_each(s.B * s.Hkv * s.Tk, 2 * own, [&](i64 t) {
      const i64 j = t % s.Tk, hkv = t / s.Tk % s.Hkv, b = t / s.Tk / s.Hkv;
      const i64 to = ((b * s.Tk + j) * s.Hkv + hkv) * s.D;
      for (i64 h = hkv * shared; h < (hkv + 1) * shared; ++h) {
        const T* from = workspace + ((b * s.H + h) * s.Tk + j) * s.D;
        REDCO_ISA_CALL(axpy(T(1), from, dk + to, s.D));
        REDCO_ISA_CALL(axpy(T(1), from + own, dv + to, s.D));
      }
    });
}

template void attention_backward(const AttentionShape&, const AttentionArgs&, const float*, const float*,
                                 const float*, const float*, const float*, const float*, float*, float*,
                                 float*, float*, float*);
template void attention_backward(const AttentionShape&, const AttentionArgs&, const double*, const double*,
                                 const double*, const double*, const double*, const double*, double*, double*,
                                 double*, double*, double*);

}  // namespace redco::kernels

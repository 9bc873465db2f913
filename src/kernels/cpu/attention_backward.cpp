// Gradients of attention. The probabilities P of a block are computed again from lse, then
//   dv += P^T g,  dP = g v^T,  dS = P (dP - delta),  dq += scale dS k,  dk += scale dS^T q,
//   delta = sum_d(g out).
// With dropout, the same mask and scale apply to P in dv and to dP; delta does not change.
#include <limits>

#include "kernels/cpu/attention.h"

namespace redco::kernels {
namespace {

// Operands that are multiplied as they are stored: rows of q and g, and what is packed block by block of
// keys, as the right operand of scores and dP: k and v, and of dq: k.
struct Stored {
  const bf16 *q, *g;
  const float *k, *v, *k_of_dq;
  float* room;  // of the products' other operands
};

// One head. The caller sets dq, dk, dv to zero. ds_sum: null, or [Tq, Tk] to which dS is added. stored: or
// null; with it, v is not used.
template <class T>
struct Head {
  const T *q, *k, *v, *out, *g, *lse;
  T *dq, *dk, *dv;
  i64 q_ld, k_ld, v_ld, o_ld, dkv_ld;  // row strides of q; k; v; out, g and dq; dk and dv
  T* ds_sum;
  const Stored* stored;
};

// Products of a block with all its rows and columns: of scores and dP; of dq; of dk and dv.
DotProduct of_scores(const AttentionShape& s) { return {kKeyBlock, s.D}; }
DotProduct of_dq(const AttentionShape& s) { return {s.D, kKeyBlock}; }
DotProduct of_dk(const AttentionShape& s) { return {s.D, kQueryBlock}; }
// What they need besides k and v: q and g as right operands, and a left operand.
i64 room_of_products(const AttentionShape& s) {
  return 2 * of_dk(s).size_of_b() +
         std::max({of_scores(s).size_of_a(kQueryBlock), of_dq(s).size_of_a(kQueryBlock),
                   of_dk(s).size_of_a(kKeyBlock)});
}

// P and dS of a block.
i64 scores_of_block(const AttentionShape& s) { return 2 * std::min(s.Tq, kQueryBlock) * kKeyBlock; }

// q k^T and g v^T of a block.
void multiply_scores(const AttentionShape& s, const Stored& y, i64 q0, i64 rows, i64 k0, i64 cols,
                     float* scores, float* dp) {
  const DotProduct p{cols, s.D};
  const i64 o_ld = s.H * s.D, packed = k0 / kKeyBlock * of_scores(s).size_of_b();
  float* const left = y.room + 2 * of_dk(s).size_of_b();
  p.multiply<bf16>(rows, {y.q + q0 * s.q_stride, s.q_stride}, y.k + packed, false, scores, kKeyBlock, left);
  p.multiply<bf16>(rows, {y.g + q0 * o_ld, o_ld}, y.v + packed, false, dp, kKeyBlock, left);
}

template <class T>
void head_backward(const AttentionShape& s, const AttentionArgs& a, ScoreBlock<T> block, const Head<T>& x,
                   T* scores) {
  block.s = scores;
  block.ld = kKeyBlock;
  T* const ds = scores + scores_of_block(s) / 2;
  T delta[kQueryBlock], scales[kQueryBlock];
  const T scale = block.scale;
  for (i64 q0 = 0; q0 < s.Tq; q0 += kQueryBlock) {
    const i64 rows = std::min(kQueryBlock, s.Tq - q0);
    block.q0 = q0;
    block.rows = rows;
    const T *q = x.q + q0 * x.q_ld, *g = x.g + q0 * x.o_ld, *out = x.out + q0 * x.o_ld;
    for (i64 i = 0; i < rows; ++i) delta[i] = REDCO_ISA_CALL(dot(g + i * x.o_ld, out + i * x.o_ld, s.D));
    const Range keys = keys_of(s, a, q0, q0 + rows);
    // With a sink, dS of the keys alone does not sum to zero.
    block.whole_rows =
        !a.sinks && keys.begin / kKeyBlock == (std::max(keys.end, keys.begin + 1) - 1) / kKeyBlock;
    for (i64 k0 = keys.begin / kKeyBlock * kKeyBlock; k0 < keys.end; k0 += kKeyBlock) {
      const i64 cols = std::min(kKeyBlock, keys.end - k0);
      block.k0 = k0;
      block.cols = cols;
      const T* const k = x.k + k0 * x.k_ld;
      T *const dq = x.dq + q0 * x.o_ld, *const dk = x.dk + k0 * x.dkv_ld, *const dv = x.dv + k0 * x.dkv_ld;
      const auto add_to_bias = [&] {
        for (i64 i = 0; x.ds_sum && i < rows; ++i)
          REDCO_ISA_CALL(axpy(T(1), ds + i * block.ld, x.ds_sum + (q0 + i) * s.Tk + k0, cols));
      };
      if constexpr (std::is_same_v<T, float>) {
        if (x.stored) {
          multiply_scores(s, *x.stored, q0, rows, k0, cols, block.s, ds);
          REDCO_ISA_CALL(attend_block_backward(block, x.lse + q0, delta, ds));
          add_to_bias();
          std::fill_n(scales, rows, scale);
          REDCO_ISA_CALL(scale_rows(ds, block.ld, rows, cols, scales));
          const DotProduct of_q{s.D, cols}, of_k{s.D, rows};
          const Stored& y = *x.stored;
          const float* const right = y.k_of_dq + k0 / kKeyBlock * of_dq(s).size_of_b();
          float *const packed_q = y.room, *const packed_g = packed_q + of_dk(s).size_of_b(),
                       *const left = packed_g + of_dk(s).size_of_b();
          if (k0 <= keys.begin) {  // the first block of keys for these queries
            of_k.pack({y.q + q0 * s.q_stride, s.q_stride}, packed_q);
            of_k.pack({y.g + q0 * s.H * s.D, s.H * s.D}, packed_g);
          }
          of_k.multiply<float>(cols, {block.s, block.ld, true}, packed_g, true, dv, x.dkv_ld, left);
          of_q.multiply<float>(rows, {ds, block.ld}, right, true, dq, x.o_ld, left);
          of_k.multiply<float>(cols, {ds, block.ld, true}, packed_q, true, dk, x.dkv_ld, left);
          continue;
        }
      }
      block_gemm<T>(false, true, rows, cols, s.D, 1, q, x.q_ld, k, x.k_ld, 0, block.s, block.ld);
      block_gemm<T>(false, true, rows, cols, s.D, 1, g, x.o_ld, x.v + k0 * x.v_ld, x.v_ld, 0, ds, block.ld);
      if (s.D == 0) std::fill_n(scores, scores_of_block(s), T(0));
      REDCO_ISA_CALL(attend_block_backward(block, x.lse + q0, delta, ds));
      add_to_bias();
      block_gemm<T>(true, false, cols, s.D, rows, 1, block.s, block.ld, g, x.o_ld, 1, dv, x.dkv_ld);
      block_gemm<T>(false, false, rows, s.D, cols, scale, ds, block.ld, k, x.k_ld, 1, dq, x.o_ld);
      block_gemm<T>(true, false, cols, s.D, rows, scale, ds, block.ld, q, x.q_ld, 1, dk, x.dkv_ld);
    }
  }
}

// What a head needs: the scores of a block, then the elements of a bf16 head in fp32: q, out, g, dq, k, v,
// dk, dv; and k and v packed, if they are multiplied as they are stored.
i64 room_of_head(const AttentionShape& s, bool bf16) {
  i64 room = scores_of_block(s) + (bf16 ? 4 * (s.Tq + s.Tk) * s.D : 0);
  if (multiplies_stored(s, bf16))
    room += ceil_div(s.Tk, kKeyBlock) * (2 * of_scores(s).size_of_b() + of_dq(s).size_of_b()) +
            room_of_products(s);
  return room;
}

i64 rooms_of(const AttentionShape& s) { return rooms_for(s.B * s.H); }

// dk and dv of each query head, if query heads share a key head.
i64 own_of(const AttentionShape& s) { return s.H > s.Hkv ? s.B * s.H * s.Tk * s.D : 0; }

}  // namespace

i64 attention_backward_workspace(const AttentionShape& s, bool bf16) {
  return 2 * own_of(s) + rooms_of(s) * room_of_head(s, bf16);
}

template <class T, class X>
void attention_backward(const AttentionShape& s, const AttentionArgs& a, const X* q, const X* k, const X* v,
                        const X* out, const T* lse, const X* g, X* dq, X* dk, X* dv, T* dbias, T* workspace) {
  constexpr bool kWide = std::is_same_v<T, X>;
  check_attention(s, a);
  REDCO_CHECK(!dbias || a.bias, "dbias is given, but there is no bias");
  const i64 o_ld = s.H * s.D, kv_size = s.B * s.Tk * s.Hkv * s.D, shared = s.Hkv ? s.H / s.Hkv : 1;
  for_blocks(s.B * s.Tq * o_ld, [&](i64 i, i64 end) { std::fill(dq + i, dq + end, X{}); });
  for_blocks(kv_size, [&](i64 i, i64 end) {
    std::fill(dk + i, dk + end, X{});
    std::fill(dv + i, dv + end, X{});
  });
  const i64 bias_cells = dbias ? a.bias_B * a.bias_H : 0;
  for_blocks(bias_cells * s.Tq * s.Tk, [&](i64 i, i64 end) { std::fill(dbias + i, dbias + end, T(0)); });
  if (s.B * s.Tq * s.H * s.Tk == 0) return;

  // If query heads share a key head, each query head gets separate dk and dv, [B, H, Tk, D] twice, which are
  // added in order at the end.
  const i64 own = own_of(s);
  for_blocks(2 * own, [&](i64 i, i64 end) { std::fill(workspace + i, workspace + end, T(0)); });
  const auto run = [&](i64 b, i64 h, T* room) {
    const i64 hkv = h / shared, at = b * s.Tq * o_ld + h * s.D;
    const X *const hq = q + b * s.Tq * s.q_stride + h * s.D, *const hk = k + b * s.k_batch_stride + hkv * s.D,
                   *const hv = v + b * s.v_batch_stride + hkv * s.D;
    const i64 dkv_ld = s.Hkv * s.D, dkv = (b * s.Tk * s.Hkv + hkv) * s.D;
    Head<T> x{};
    Stored stored;
    x.lse = lse + (b * s.H + h) * s.Tq;
    if constexpr (kWide) {
      x = {hq,       hk,         hv,         out + at,   g + at, x.lse,  dq + at, dk + dkv,
           dv + dkv, s.q_stride, s.k_stride, s.v_stride, o_ld,   dkv_ld, nullptr, nullptr};
    } else {
      const i64 queries = s.Tq * s.D, keys = s.Tk * s.D;
      T *const wq = room + scores_of_block(s), *const wo = wq + queries, *const wg = wo + queries,
               *const wdq = wg + queries, *const wk = wdq + queries, *const wv = wk + keys,
               *const wdk = wv + keys, *const wdv = wdk + keys;
      const bool as_stored = multiplies_stored(s, true);
      for (i64 i = 0; i < s.Tq; ++i) {
        if (!as_stored) widen(hq + i * s.q_stride, wq + i * s.D, s.D);
        widen(out + at + i * o_ld, wo + i * s.D, s.D);
        widen(g + at + i * o_ld, wg + i * s.D, s.D);
      }
      for (i64 i = 0; !as_stored && i < s.Tk; ++i) {
        widen(hk + i * s.k_stride, wk + i * s.D, s.D);
        widen(hv + i * s.v_stride, wv + i * s.D, s.D);
      }
      std::fill_n(wdq, queries, T(0));
      std::fill_n(wdk, 2 * keys, T(0));
      x = {wq, wk, wv, wo, wg, x.lse, wdq, wdk, wdv, s.D, s.D, s.D, s.D, s.D, nullptr, nullptr};
      if (as_stored) {
        const i64 blocks = ceil_div(s.Tk, kKeyBlock), size = of_scores(s).size_of_b(),
                  size_of_dq = of_dq(s).size_of_b();
        T *const pk = wdv + keys, *const pv = pk + blocks * size, *const pdq = pv + blocks * size;
        for (i64 i = 0; i < blocks; ++i) {
          const i64 first = i * kKeyBlock, cols = std::min(kKeyBlock, s.Tk - first);
          const DotProduct p{cols, s.D};
          p.pack({hk + first * s.k_stride, s.k_stride, true}, pk + i * size);
          p.pack({hv + first * s.v_stride, s.v_stride, true}, pv + i * size);
          DotProduct{s.D, cols}.pack({hk + first * s.k_stride, s.k_stride}, pdq + i * size_of_dq);
        }
        stored = {hq, g + at, pk, pv, pdq, pdq + blocks * size_of_dq};
        x.stored = &stored;
      }
    }
    if (shared > 1) {
      x.dk = workspace + (b * s.H + h) * s.Tk * s.D;
      x.dv = x.dk + own;
      x.dkv_ld = s.D;
    }
    if (dbias)
      x.ds_sum = dbias + ((a.bias_B == 1 ? 0 : b) * a.bias_H + (a.bias_H == 1 ? 0 : h)) * s.Tq * s.Tk;
    head_backward(s, a, score_block<T>(s, a, b, h), x, room);
    if constexpr (!kWide) {
      for (i64 i = 0; i < s.Tq; ++i) store(x.dq + i * s.D, dq + at + i * o_ld, s.D);
      for (i64 i = 0; shared == 1 && i < s.Tk; ++i) {
        store(x.dk + i * s.D, dk + dkv + i * dkv_ld, s.D);
        store(x.dv + i * s.D, dv + dkv + i * dkv_ld, s.D);
      }
    }
  };
  // Heads that add to the same bias run one after the other.
  const bool over_b = dbias && a.bias_B == 1, over_h = dbias && a.bias_H == 1;
  const i64 cells_b = over_b ? 1 : s.B, cells_h = over_h ? 1 : s.H;
  const auto cell = [&](i64 t, T* room) {
    const i64 b0 = t / cells_h, h0 = t % cells_h;
    for (i64 b = b0; b < (over_b ? s.B : b0 + 1); ++b)
      for (i64 h = h0; h < (over_h ? s.H : h0 + 1); ++h) run(b, h, room);
  };
  const i64 n = cells_b * cells_h, work = s.B * s.H * s.Tq * s.Tk * (1 + s.D / 4);
  for_each_in_rooms(rooms_of(s), n, work,
                    [&](i64 t, i64 room) { cell(t, workspace + 2 * own + room * room_of_head(s, !kWide)); });

  if (shared > 1)
    for_each(s.B * s.Hkv * s.Tk, 2 * own, [&](i64 t) {
      const i64 j = t % s.Tk, hkv = t / s.Tk % s.Hkv, b = t / s.Tk / s.Hkv;
      const i64 to = ((b * s.Tk + j) * s.Hkv + hkv) * s.D;
      T* const first = workspace + ((b * s.H + hkv * shared) * s.Tk + j) * s.D;
      for (i64 part : {i64{0}, own}) {
        X* const sum = (part == 0 ? dk : dv) + to;
        if constexpr (kWide) {
          for (i64 h = 0; h < shared; ++h)
            REDCO_ISA_CALL(axpy(T(1), first + part + h * s.Tk * s.D, sum, s.D));
        } else {
          for (i64 h = 1; h < shared; ++h)
            REDCO_ISA_CALL(axpy(T(1), first + part + h * s.Tk * s.D, first + part, s.D));
          store(first + part, sum, s.D);
        }
      }
    });
}

#define INSTANTIATE(T, X)                                                                           \
  template void attention_backward(const AttentionShape&, const AttentionArgs&, const X*, const X*, \
                                   const X*, const X*, const T*, const X*, X*, X*, X*, T*, T*);
INSTANTIATE(float, float)
INSTANTIATE(double, double)
INSTANTIATE(float, bf16)
#undef INSTANTIATE

}  // namespace redco::kernels

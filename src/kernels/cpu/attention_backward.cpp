// Gradients of attention. The probabilities P of a block are computed again from lse, then
//   dv += P^T g,  dP = g v^T,  dS = P (dP - delta),  dq += scale dS k,  dk += scale dS^T q,
//   delta = sum_d(g out).
// With dropout, the same mask and scale apply to P in dv and to dP; delta does not change.
#include <array>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/room.h"

namespace redco::kernels {
namespace {

// Products of a block with all its rows and columns: of scores and dP; of dq; of dk and dv.
DotProduct of_scores(const AttentionShape& s) { return {kKeyBlock, s.D}; }
DotProduct of_dq(const AttentionShape& s) { return {s.D, kKeyBlock}; }
DotProduct of_dk(const AttentionShape& s) { return {s.D, kQueryBlock}; }

// Operands that are multiplied in bf16: rows of q and g, and what is packed, as right operands: k
// and v of scores and dP and k of dq for each block of keys, q and g of dk and dv for one block of queries.
struct Stored {
  const bf16 *q = nullptr, *g = nullptr;
  float *k = nullptr, *v = nullptr, *k_of_dq = nullptr;
  float *q_of_dk = nullptr, *g_of_dv = nullptr;
  float* left = nullptr;  // room of a left operand
};

// The workspace of one head.
template <class T>
struct HeadRoom {
  T *p, *ds;  // probabilities and dS of a block
  // A head of bf16 in fp32: [Tq, D] and [Tk, D].
  T *q = nullptr, *out = nullptr, *g = nullptr, *dq = nullptr;
  T *k = nullptr, *v = nullptr, *dk = nullptr, *dv = nullptr;
  Stored stored;
  i64 size;

  HeadRoom(const AttentionShape& s, bool bf16, T* memory = nullptr) {
    Room<T> room(memory);
    const i64 block = scores_of_block(s);
    p = room.take(block);
    ds = room.take(block);
    if (bf16) {
      for (T** queries : {&q, &out, &g, &dq}) *queries = room.take(s.Tq * s.D);
      for (T** keys : {&k, &v, &dk, &dv}) *keys = room.take(s.Tk * s.D);
    }
    if (multiplies_stored(s, bf16)) {
      const i64 blocks = ceil_div(s.Tk, kKeyBlock);
      stored.k = room.template take<float>(blocks * of_scores(s).size_of_b());
      stored.v = room.template take<float>(blocks * of_scores(s).size_of_b());
      stored.k_of_dq = room.template take<float>(blocks * of_dq(s).size_of_b());
      stored.q_of_dk = room.template take<float>(of_dk(s).size_of_b());
      stored.g_of_dv = room.template take<float>(of_dk(s).size_of_b());
      stored.left = room.template take<float>(
          std::max({of_scores(s).size_of_a(kQueryBlock), of_dq(s).size_of_a(kQueryBlock),
                    of_dk(s).size_of_a(kKeyBlock)}));
    }
    size = room.used();
  }

  static i64 scores_of_block(const AttentionShape& s) { return std::min(s.Tq, kQueryBlock) * kKeyBlock; }
};

// One head. The caller sets dq, dk, dv to zero. ds_sum: null, or [Tq, Tk] to which dS is added. stored: or
// null; with it, q, k and v are not used.
template <class T>
struct Head {
  const T *q, *k, *v, *out, *g, *lse;
  T *dq, *dk, *dv;
  i64 q_ld, k_ld, v_ld, o_ld, dkv_ld;  // row strides of q; k; v; out, g and dq; dk and dv
  T* ds_sum = nullptr;
  const Stored* stored = nullptr;
};

// A block of one head, [rows, cols] from query q0 and key k0 on. `scores` and `ds` have its scores and dP,
// later P and dS.
template <class T>
struct HeadBlock {
  const AttentionShape& s;
  const Head<T>& x;
  ScoreBlock<T>& scores;
  T *ds, *delta;
  bool first_keys;  // the first block of keys for these queries
  T *dq, *dk, *dv;

  i64 rows() const { return scores.rows; }
  i64 cols() const { return scores.cols; }
  // dS from the scores and dP.
  void differentiate() const {
    REDCO_ISA_CALL(attend_block_backward(scores, x.lse + scores.q0, delta, ds));
    for (i64 i = 0; x.ds_sum && i < rows(); ++i)
      REDCO_ISA_CALL(axpy(T(1), ds + i * scores.ld, x.ds_sum + (scores.q0 + i) * s.Tk + scores.k0, cols()));
  }
};

// Products of the head's type, of operands in that type.
template <class T>
void block_backward(const HeadBlock<T>& b) {
  const auto& [s, x, scores, ds, delta, first_keys, dq, dk, dv] = b;
  const i64 rows = b.rows(), cols = b.cols(), ld = scores.ld;
  const T *const q = x.q + scores.q0 * x.q_ld, *const g = x.g + scores.q0 * x.o_ld;
  const T *const k = x.k + scores.k0 * x.k_ld, *const v = x.v + scores.k0 * x.v_ld;
  const T scale = scores.scale;
  block_gemm<T>(false, true, rows, cols, s.D, 1, q, x.q_ld, k, x.k_ld, 0, scores.s, ld);
  block_gemm<T>(false, true, rows, cols, s.D, 1, g, x.o_ld, v, x.v_ld, 0, ds, ld);
  if (s.D == 0) {
    std::fill_n(scores.s, HeadRoom<T>::scores_of_block(s), T(0));
    std::fill_n(ds, HeadRoom<T>::scores_of_block(s), T(0));
  }
  b.differentiate();
  block_gemm<T>(true, false, cols, s.D, rows, 1, scores.s, ld, g, x.o_ld, 1, dv, x.dkv_ld);
  block_gemm<T>(false, false, rows, s.D, cols, scale, ds, ld, k, x.k_ld, 1, dq, x.o_ld);
  block_gemm<T>(true, false, cols, s.D, rows, scale, ds, ld, q, x.q_ld, 1, dk, x.dkv_ld);
}

// Products of bf16.
void block_backward_stored(const HeadBlock<float>& b) {
  const auto& [s, x, scores, ds, delta, first_keys, dq, dk, dv] = b;
  const Stored& y = *x.stored;
  const i64 rows = b.rows(), cols = b.cols(), ld = scores.ld, o_ld = s.H * s.D;
  const i64 block = scores.k0 / kKeyBlock;
  const bf16 *const q = y.q + scores.q0 * s.q_stride, *const g = y.g + scores.q0 * o_ld;
  const DotProduct of_keys{cols, s.D}, of_q{s.D, cols}, of_k{s.D, rows};
  const i64 packed = block * of_scores(s).size_of_b();
  of_keys.multiply<bf16>(rows, {q, s.q_stride}, y.k + packed, false, scores.s, ld, y.left);
  of_keys.multiply<bf16>(rows, {g, o_ld}, y.v + packed, false, ds, ld, y.left);
  b.differentiate();
  std::array<float, kQueryBlock> scales;  // NOLINT: written below
  std::fill_n(scales.data(), rows, scores.scale);
  REDCO_ISA_CALL(scale_rows(ds, ld, rows, cols, scales.data()));
  if (first_keys) {
    of_k.pack({q, s.q_stride}, y.q_of_dk);
    of_k.pack({g, o_ld}, y.g_of_dv);
  }
  of_k.multiply<float>(cols, {scores.s, ld, true}, y.g_of_dv, true, dv, x.dkv_ld, y.left);
  of_q.multiply<float>(rows, {ds, ld}, y.k_of_dq + block * of_dq(s).size_of_b(), true, dq, x.o_ld, y.left);
  of_k.multiply<float>(cols, {ds, ld, true}, y.q_of_dk, true, dk, x.dkv_ld, y.left);
}

template <class T>
void head_backward(const AttentionShape& s, const AttentionArgs& a, ScoreBlock<T> block, const Head<T>& x,
                   const HeadRoom<T>& room) {
  block.s = room.p;
  block.ld = kKeyBlock;
  T delta[kQueryBlock];
  for (i64 q0 = 0; q0 < s.Tq; q0 += kQueryBlock) {
    block.q0 = q0;
    block.rows = std::min(kQueryBlock, s.Tq - q0);
    const T *g = x.g + q0 * x.o_ld, *out = x.out + q0 * x.o_ld;
    for (i64 i = 0; i < block.rows; ++i)
      delta[i] = REDCO_ISA_CALL(dot(g + i * x.o_ld, out + i * x.o_ld, s.D));
    const Range keys = keys_of(s, a, q0, q0 + block.rows);
    const i64 first = keys.begin / kKeyBlock * kKeyBlock;
    // With a sink, dS of the keys alone does not sum to zero.
    block.whole_rows =
        !a.sinks && keys.begin / kKeyBlock == (std::max(keys.end, keys.begin + 1) - 1) / kKeyBlock;
    for (i64 k0 = first; k0 < keys.end; k0 += kKeyBlock) {
      block.k0 = k0;
      block.cols = std::min(kKeyBlock, keys.end - k0);
      const HeadBlock<T> b{s,
                           x,
                           block,
                           room.ds,
                           delta,
                           k0 == first,
                           x.dq + q0 * x.o_ld,
                           x.dk + k0 * x.dkv_ld,
                           x.dv + k0 * x.dkv_ld};
      if constexpr (std::is_same_v<T, float>) {
        if (x.stored) {
          block_backward_stored(b);
          continue;
        }
      }
      block_backward(b);
    }
  }
}

// Operands and results of all heads. X: their type in memory.
template <class T, class X>
struct AttentionGradients {
  const AttentionShape& s;
  const X *q, *k, *v, *out;
  const T* lse;
  const X* g;
  X *dq, *dk, *dv;

  i64 o_ld() const { return s.H * s.D; }
  i64 dkv_ld() const { return s.Hkv * s.D; }
  i64 shared() const { return s.Hkv ? s.H / s.Hkv : 1; }
  // Where head h of batch b begins.
  const X* head_of_q(i64 b, i64 h) const { return q + b * s.Tq * s.q_stride + h * s.D; }
  const X* head_of_k(i64 b, i64 h) const { return k + b * s.k_batch_stride + h / shared() * s.D; }
  const X* head_of_v(i64 b, i64 h) const { return v + b * s.v_batch_stride + h / shared() * s.D; }
  i64 at(i64 b, i64 h) const { return b * s.Tq * o_ld() + h * s.D; }                 // in out, g and dq
  i64 at_kv(i64 b, i64 h) const { return (b * s.Tk * s.Hkv + h / shared()) * s.D; }  // in dk and dv
};

// The head in fp32. If products read bf16, keys and values are packed instead of widened.
template <class X>
Head<float> widened_head(const AttentionGradients<float, X>& all, i64 b, i64 h, HeadRoom<float>& room) {
  const AttentionShape& s = all.s;
  const X *const q = all.head_of_q(b, h), *const k = all.head_of_k(b, h), *const v = all.head_of_v(b, h);
  const i64 at = all.at(b, h);
  const bool as_stored = multiplies_stored(s, true);
  const auto widen_rows = [&](const X* from, i64 ld, i64 rows, float* to) {
    for (i64 i = 0; i < rows; ++i) widen(from + i * ld, to + i * s.D, s.D);
  };
  widen_rows(all.out + at, all.o_ld(), s.Tq, room.out);
  widen_rows(all.g + at, all.o_ld(), s.Tq, room.g);
  std::fill_n(room.dq, s.Tq * s.D, 0.0f);
  std::fill_n(room.dk, s.Tk * s.D, 0.0f);
  std::fill_n(room.dv, s.Tk * s.D, 0.0f);
  Head<float> x{room.q,  room.k,  room.v, room.out, room.g, nullptr, room.dq,
                room.dk, room.dv, s.D,    s.D,      s.D,    s.D,     s.D};
  if (!as_stored) {
    widen_rows(q, s.q_stride, s.Tq, room.q);
    widen_rows(k, s.k_stride, s.Tk, room.k);
    widen_rows(v, s.v_stride, s.Tk, room.v);
    return x;
  }
  Stored& y = room.stored;
  y.q = q;
  y.g = all.g + at;
  for (i64 i = 0; i < ceil_div(s.Tk, kKeyBlock); ++i) {
    const i64 first = i * kKeyBlock, cols = std::min(kKeyBlock, s.Tk - first);
    const DotProduct p{cols, s.D};
    p.pack({k + first * s.k_stride, s.k_stride, true}, y.k + i * of_scores(s).size_of_b());
    p.pack({v + first * s.v_stride, s.v_stride, true}, y.v + i * of_scores(s).size_of_b());
    DotProduct{s.D, cols}.pack({k + first * s.k_stride, s.k_stride}, y.k_of_dq + i * of_dq(s).size_of_b());
  }
  x.stored = &y;
  return x;
}

template <class T>
Head<T> head_in_place(const AttentionGradients<T, T>& all, i64 b, i64 h) {
  const AttentionShape& s = all.s;
  const i64 at = all.at(b, h), kv = all.at_kv(b, h);
  return {all.head_of_q(b, h), all.head_of_k(b, h), all.head_of_v(b, h), all.out + at, all.g + at, nullptr,
          all.dq + at,         all.dk + kv,         all.dv + kv,         s.q_stride,   s.k_stride, s.v_stride,
          all.o_ld(),          all.dkv_ld()};
}

// Rounds the gradients of a head; dk and dv of shared heads are added up first (add_shared_heads).
void store_head(const AttentionGradients<float, bf16>& all, i64 b, i64 h, const Head<float>& x) {
  const AttentionShape& s = all.s;
  const i64 at = all.at(b, h), kv = all.at_kv(b, h);
  for (i64 i = 0; i < s.Tq; ++i) store(x.dq + i * s.D, all.dq + at + i * all.o_ld(), s.D);
  for (i64 i = 0; all.shared() == 1 && i < s.Tk; ++i) {
    store(x.dk + i * s.D, all.dk + kv + i * all.dkv_ld(), s.D);
    store(x.dv + i * s.D, all.dv + kv + i * all.dkv_ld(), s.D);
  }
}

i64 rooms_of(const AttentionShape& s) { return rooms_for(s.B * s.H); }

// If query heads share a key head, each query head gets separate dk and dv, [B, H, Tk, D] twice, which are
// added in order at the end.
i64 own_of(const AttentionShape& s) { return s.H > s.Hkv ? s.B * s.H * s.Tk * s.D : 0; }

template <class T, class X>
void add_shared_heads(const AttentionGradients<T, X>& all, T* each) {
  const AttentionShape& s = all.s;
  const i64 own = own_of(s), shared = all.shared();
  for_each(s.B * s.Hkv * s.Tk, 2 * own, [&](i64 t) {
    const i64 j = t % s.Tk, hkv = t / s.Tk % s.Hkv, b = t / s.Tk / s.Hkv;
    const i64 to = ((b * s.Tk + j) * s.Hkv + hkv) * s.D;
    T* const first = each + ((b * s.H + hkv * shared) * s.Tk + j) * s.D;
    for (i64 part : {i64{0}, own}) {
      X* const sum = (part == 0 ? all.dk : all.dv) + to;
      if constexpr (std::is_same_v<T, X>) {
        for (i64 h = 0; h < shared; ++h) REDCO_ISA_CALL(axpy(T(1), first + part + h * s.Tk * s.D, sum, s.D));
      } else {
        for (i64 h = 1; h < shared; ++h)
          REDCO_ISA_CALL(axpy(T(1), first + part + h * s.Tk * s.D, first + part, s.D));
        store(first + part, sum, s.D);
      }
    }
  });
}

template <class X>
void clear(X* x, i64 n) {
  for_blocks(n, [&](i64 i, i64 end) { std::fill(x + i, x + end, X{}); });
}

}  // namespace

i64 attention_backward_workspace(const AttentionShape& s, bool bf16) {
  return 2 * own_of(s) + rooms_of(s) * HeadRoom<float>(s, bf16).size;
}

template <class T, class X>
void attention_backward(const AttentionShape& s, const AttentionArgs& a, const X* q, const X* k, const X* v,
                        const X* out, const T* lse, const X* g, X* dq, X* dk, X* dv, T* dbias, T* workspace) {
  constexpr bool kWide = std::is_same_v<T, X>;
  check_attention(s, a);
  REDCO_CHECK(!dbias || a.bias, "dbias is given, but there is no bias");
  const AttentionGradients<T, X> all{s, q, k, v, out, lse, g, dq, dk, dv};
  const i64 kv_size = s.B * s.Tk * s.Hkv * s.D;
  clear(dq, s.B * s.Tq * all.o_ld());
  clear(dk, kv_size);
  clear(dv, kv_size);
  clear(dbias, dbias ? a.bias_B * a.bias_H * s.Tq * s.Tk : 0);
  if (s.B * s.Tq * s.H * s.Tk == 0) return;

  const i64 own = own_of(s), size = HeadRoom<T>(s, !kWide).size;
  T *const each_dk = workspace, *const rooms = workspace + 2 * own;
  clear(each_dk, 2 * own);
  const auto run = [&](i64 b, i64 h, T* memory) {
    HeadRoom<T> room(s, !kWide, memory);
    Head<T> x = [&] {
      if constexpr (kWide)
        return head_in_place(all, b, h);
      else
        return widened_head(all, b, h, room);
    }();
    x.lse = lse + (b * s.H + h) * s.Tq;
    if (all.shared() > 1) {
      x.dk = each_dk + (b * s.H + h) * s.Tk * s.D;
      x.dv = x.dk + own;
      x.dkv_ld = s.D;
    }
    if (dbias)
      x.ds_sum = dbias + ((a.bias_B == 1 ? 0 : b) * a.bias_H + (a.bias_H == 1 ? 0 : h)) * s.Tq * s.Tk;
    head_backward(s, a, score_block<T>(s, a, b, h), x, room);
    if constexpr (!kWide) store_head(all, b, h, x);
  };
  // Heads that add to the same bias run one after the other.
  const bool over_b = dbias && a.bias_B == 1, over_h = dbias && a.bias_H == 1;
  const i64 cells_b = over_b ? 1 : s.B, cells_h = over_h ? 1 : s.H;
  const i64 work = s.B * s.H * s.Tq * s.Tk * (1 + s.D / 4);
  for_each_in_rooms(rooms_of(s), cells_b * cells_h, work, [&](i64 t, i64 room) {
    const i64 b0 = t / cells_h, h0 = t % cells_h;
    for (i64 b = b0; b < (over_b ? s.B : b0 + 1); ++b)
      for (i64 h = h0; h < (over_h ? s.H : h0 + 1); ++h) run(b, h, rooms + room * size);
  });
  if (all.shared() > 1) add_shared_heads(all, each_dk);
}

#define INSTANTIATE(T, X)                                                                           \
  template void attention_backward(const AttentionShape&, const AttentionArgs&, const X*, const X*, \
                                   const X*, const X*, const T*, const X*, X*, X*, X*, T*, T*);
INSTANTIATE(float, float)
INSTANTIATE(double, double)
INSTANTIATE(float, bf16)
#undef INSTANTIATE

}  // namespace redco::kernels

#include "kernels/cpu/attention.h"

#include <cmath>
#include <limits>

#include "kernels/cpu/device.h"
#include "kernels/cpu/mixed.h"
#include "kernels/cpu/views.h"

namespace redco::kernels {
namespace {

// Consecutive queries of one head. stored: the same in bf16, s.q_stride apart, if they are multiplied as they
// are; q is not used then.
template <class T>
struct Rows {
  const bf16* stored;
  const T* q;
  i64 q_ld;
  T* out;  // output: unnormalized sum of exp(s - m) v
  i64 out_ld;
  T *m, *l;  // [rows] output: maximum, sum
};

// Online softmax over the keys [keys.begin, keys.end), block by block. B, the type of keys
// and values, is T or bf16; sums are in T. room: the block's scores, then what room_of_block() says.
template <class T, class B>
void attend(const AttentionShape& s, const Rows<T>& r, ScoreBlock<T> block, const B* k, const B* v,
            Range keys, T* room) {
  const i64 rows = block.rows;
  T correction[kQueryBlock];
  T* const widened = room + rows * kKeyBlock;
  block.s = room;
  block.ld = kKeyBlock;
  for (i64 i = 0; i < rows; ++i) {
    std::fill(r.out + i * r.out_ld, r.out + i * r.out_ld + s.D, T(0));
    r.m[i] = -std::numeric_limits<T>::infinity();
    r.l[i] = 0;
  }
  for (i64 k0 = keys.begin; k0 < keys.end; k0 += kKeyBlock) {
    block.k0 = k0;
    block.cols = std::min(kKeyBlock, keys.end - k0);
    const B* const keys_here = k + k0 * s.k_stride;
    if constexpr (std::is_same_v<T, float> && std::is_same_v<B, bf16>) {
      if (r.stored) {
        const DotProduct p{block.cols, s.D};
        p.pack({keys_here, s.k_stride, true}, widened);
        p.multiply<bf16>(rows, {r.stored, s.q_stride}, widened, false, block.s, block.ld,
                         widened + p.size_of_b());
      }
    }
    if (!r.stored)
      block_gemm<T, B>(false, true, rows, block.cols, s.D, 1, r.q, r.q_ld, keys_here, s.k_stride, 0, block.s,
                       block.ld, widened);
    if (s.D == 0) std::fill(block.s, block.s + rows * block.ld, T(0));
    REDCO_ISA_CALL(attend_block(block, r.m, r.l, correction));
    REDCO_ISA_CALL(scale_rows(r.out, r.out_ld, rows, s.D, correction));
    const B* const values = v + k0 * s.v_stride;
    if constexpr (std::is_same_v<T, float> && std::is_same_v<B, bf16>) {
      if (r.stored) {
        const DotProduct p{s.D, block.cols};
        p.pack({values, s.v_stride}, widened);
        p.multiply<float>(rows, {block.s, block.ld}, widened, true, r.out, r.out_ld, widened + p.size_of_b());
      }
    }
    if (!r.stored)
      block_gemm<T, B>(false, false, rows, s.D, block.cols, 1, block.s, block.ld, values, s.v_stride, 1,
                       r.out, r.out_ld, widened);
  }
}

// sink: a further score of the rows, or null.
template <class T>
void finish(T* out, i64 ld, i64 rows, i64 D, const T* m, const T* l, const T* sink, T* lse) {
  for (i64 i = 0; i < rows; ++i) {
    T top = m[i], sum = l[i], factor = 1;
    if (sink) {
      top = std::max(m[i], *sink);
      factor = std::exp(m[i] - top);
      sum = sum * factor + std::exp(*sink - top);
    }
    const T by = sum == 0 ? T(0) : factor / sum;
    lse[i] = sum == 0 ? -std::numeric_limits<T>::infinity() : top + std::log(sum);
    REDCO_ISA_CALL(scale_rows(out + i * ld, ld, 1, D, &by));
  }
}

// The sink of batch b and head h, or null.
template <class T>
const T* sink_of(const AttentionShape& s, const AttentionArgs& a, i64 b, i64 h) {
  return a.sinks ? static_cast<const T*>(a.sinks) + (a.sinks_B == 1 ? 0 : b) * s.H + h : nullptr;
}

constexpr i64 kCacheBlock = 64, kMostSplits = 32;

// The keys of a decoding step are split into pieces of this many, by shape alone.
i64 split_of(Range keys) {
  return std::max<i64>(1, ceil_div(ceil_div(keys.end - keys.begin, kMostSplits), kCacheBlock)) * kCacheBlock;
}
i64 splits_of(Range keys) { return std::max<i64>(1, ceil_div(keys.end - keys.begin, split_of(keys))); }

// Tq == 1. A piece of work is a split of the keys of one example, with all heads, so the cache is read in
// order. The partial results of the splits are combined in order. Workspace: for each head and split out[D],
// m, l, then a block of scores for each head.
template <class T, class B>
void decode(const AttentionShape& s, const AttentionArgs& a, const T* q, const B* k, const B* v, T* out,
            T* lse, T* workspace) {
  const Range keys = keys_of(s, a, 0, 1);
  const i64 split = split_of(keys), splits = splits_of(keys), stride = s.D + 2;
  const i64 shared = s.H / s.Hkv, sharing = ceil_div(shared, kFewRows);
  T* const scores = workspace + s.B * s.H * splits * stride;
  for_each(s.B * splits, s.B * s.H * (keys.end - keys.begin) * s.D / 4, [&](i64 t) {
    const i64 b = t / splits, piece = t % splits;
    const i64 begin = keys.begin + piece * split, end = std::min(keys.end, begin + split);
    T* const own = scores + t * s.H * kCacheBlock;
    const auto part = [&](i64 h) { return workspace + ((b * s.H + h) * splits + piece) * stride; };
    for (i64 h = 0; h < s.H; ++h) {
      std::fill(part(h), part(h) + stride, T(0));
      part(h)[s.D] = -std::numeric_limits<T>::infinity();
    }
    for (i64 k0 = begin; k0 < end; k0 += kCacheBlock) {
      const i64 cols = std::min(kCacheBlock, end - k0);
      // Heads that share a key head, at most kFewRows at a time.
      const auto for_heads = [&](const auto& f) {
        if (sharing == 1) return f(0, HeadRows{s.Hkv, shared, s.D}, 0);
        for (i64 hkv = 0; hkv < s.Hkv; ++hkv)
          for (i64 h = 0; h < shared; h += kFewRows)
            f(hkv * shared + h, HeadRows{1, std::min(kFewRows, shared - h), s.D}, hkv);
      };
      for_heads([&](i64 h, const HeadRows& rows, i64 hkv) {
        REDCO_ISA_CALL(head_scores(rows, cols, q + b * s.q_stride + h * s.D,
                                   k + b * s.k_batch_stride + k0 * s.k_stride + hkv * s.D, s.k_stride,
                                   own + h * kCacheBlock, kCacheBlock));
      });
      for (i64 h = 0; h < s.H; ++h) {
        ScoreBlock<T> block = score_block<T>(s, a, b, h);
        block.s = own + h * kCacheBlock;
        block.ld = kCacheBlock;
        block.rows = 1;
        block.k0 = k0;
        block.cols = cols;
        T* const o = part(h);
        T correction;
        REDCO_ISA_CALL(attend_block(block, o + s.D, o + s.D + 1, &correction));
        if (k0 > begin) REDCO_ISA_CALL(scale_rows(o, s.D, 1, s.D, &correction));
      }
      for_heads([&](i64 h, const HeadRows& rows, i64 hkv) {
        REDCO_ISA_CALL(head_values(rows, cols, own + h * kCacheBlock, kCacheBlock,
                                   v + b * s.v_batch_stride + k0 * s.v_stride + hkv * s.D, s.v_stride,
                                   part(h), splits * stride));
      });
    }
  });
  for (i64 row = 0; row < s.B * s.H; ++row) {
    const T* parts = workspace + row * splits * stride;
    T top = -std::numeric_limits<T>::infinity(), sum = 0;
    for (i64 i = 0; i < splits; ++i) top = std::max(top, parts[i * stride + s.D]);
    T* o = out + row * s.D;
    std::fill(o, o + s.D, T(0));
    for (i64 i = 0; i < splits; ++i) {
      const T* part = parts + i * stride;
      const T by = part[s.D] == top ? T(1) : std::exp(part[s.D] - top);
      sum += by * part[s.D + 1];
      REDCO_ISA_CALL(axpy(by, part, o, s.D));
    }
    finish(o, s.D, 1, s.D, &top, &sum, sink_of<T>(s, a, row / s.H, row % s.H), lse + row);
  }
}

}  // namespace

namespace {

i64 query_blocks(const AttentionShape& s) { return ceil_div(s.Tq, kQueryBlock); }
// What a block of queries needs: for bf16 queries they and their result in T; scores; keys and then values of
// a block, widened or packed.
i64 room_of_block(const AttentionShape& s, bool bf16_q, bool bf16_k) {
  const i64 rows = std::min(s.Tq, kQueryBlock);
  i64 widened = bf16_k ? s.D * kKeyBlock : 0;
  if (multiplies_stored(s, bf16_q)) {
    const DotProduct scores{kKeyBlock, s.D}, sums{s.D, kKeyBlock};
    widened = std::max(
        {widened, scores.size_of_b() + scores.size_of_a(rows), sums.size_of_b() + sums.size_of_a(rows)});
  }
  return (bf16_q ? 2 * rows * s.D : 0) + rows * kKeyBlock + widened;
}
i64 rooms_of(const AttentionShape& s) { return rooms_for(s.B * s.H * query_blocks(s)); }

}  // namespace

i64 attention_workspace(const AttentionShape& s, const AttentionArgs& a, bool bf16_q, bool bf16_k) {
  if (s.Tq == 1) return s.B * s.H * splits_of(keys_of(s, a, 0, 1)) * (s.D + 2 + kCacheBlock);
  return rooms_of(s) * room_of_block(s, bf16_q, bf16_k);
}

template <class T, class X, class B>
void attention(const AttentionShape& s, const AttentionArgs& a, const X* q, const B* k, const B* v, X* out,
               T* lse, T* workspace) {
  check_attention(s, a);
  constexpr bool kWide = std::is_same_v<T, X>;
  if (s.B * s.Tq * s.H == 0) return;
  if constexpr (kWide) {
    if (s.Tq == 1) return decode(s, a, q, k, v, out, lse, workspace);
  }
  const i64 blocks = query_blocks(s), size = room_of_block(s, !kWide, !std::is_same_v<T, B>);
  const i64 work = s.B * s.H * s.Tq * s.Tk * (1 + s.D / 8);
  for_each_in_rooms(rooms_of(s), s.B * s.H * blocks, work, [&](i64 t, i64 place) {
    T* room = workspace + place * size;
    const i64 h = t / blocks % s.H, b = t / blocks / s.H, hkv = h / (s.H / s.Hkv);
    // With a causal mask the last blocks have the most keys, so they start first.
    const i64 q0 = (blocks - 1 - t % blocks) * kQueryBlock;
    ScoreBlock<T> block = score_block<T>(s, a, b, h);
    block.q0 = q0;
    block.rows = std::min(kQueryBlock, s.Tq - q0);
    T m[kQueryBlock], l[kQueryBlock];
    const X* const queries = q + (b * s.Tq + q0) * s.q_stride + h * s.D;
    X* const result = out + ((b * s.Tq + q0) * s.H + h) * s.D;
    Rows<T> rows{nullptr, nullptr, s.q_stride, nullptr, s.H * s.D, m, l};
    if constexpr (kWide) {
      rows.q = queries;
      rows.out = result;
    } else {
      if (multiplies_stored(s, true)) rows.stored = queries;
      for (i64 i = 0; !rows.stored && i < block.rows; ++i)
        widen(queries + i * s.q_stride, room + i * s.D, s.D);
      rows.q = room;
      rows.out = room + block.rows * s.D;
      rows.q_ld = rows.out_ld = s.D;
      room += 2 * block.rows * s.D;
    }
    attend(s, rows, block, k + b * s.k_batch_stride + hkv * s.D, v + b * s.v_batch_stride + hkv * s.D,
           keys_of(s, a, q0, q0 + block.rows), room);
    finish(rows.out, rows.out_ld, block.rows, s.D, m, l, sink_of<T>(s, a, b, h),
           lse + (b * s.H + h) * s.Tq + q0);
    if constexpr (!kWide)
      for (i64 i = 0; i < block.rows; ++i) store(rows.out + i * s.D, result + i * s.H * s.D, s.D);
  });
}

#define INSTANTIATE(T, X, B)                                                                                 \
  template void attention(const AttentionShape&, const AttentionArgs&, const X*, const B*, const B*, X*, T*, \
                          T*);
INSTANTIATE(float, float, float)
INSTANTIATE(double, double, double)
INSTANTIATE(float, float, bf16)
INSTANTIATE(double, double, bf16)
INSTANTIATE(float, bf16, bf16)
#undef INSTANTIATE

namespace {

AttentionShape shape_of(const Attention& a, const View& q, const View& k) {
  AttentionShape s{q.shape[0], q.shape[1], a.keys, q.shape[2], k.shape[2], q.shape[3], 0, 0, 0, 0, 0};
  s.q_stride = q.shape[2] * q.shape[3];
  s.k_stride = s.v_stride = k.shape[2] * k.shape[3];
  s.k_batch_stride = s.v_batch_stride = k.shape[1] * k.shape[2] * k.shape[3];
  return s;
}

AttentionArgs args_of(const Attention& a, const View& q, const View& mask, const View& bias,
                      const View& sinks = {}) {
  AttentionArgs out;
  out.scale = a.scale;
  out.softcap = a.softcap;
  out.causal = a.causal;
  out.window = a.window;
  out.ahead = a.ahead;
  if (a.slopes) out.slopes = a.slopes->data() + a.head_offset;
  if (sinks.present) {
    out.sinks = pointer<void>(sinks);
    out.sinks_B = sinks.shape[0];
  }
  out.key_mask = pointer<i32>(mask);
  if (a.segmented && mask.present) {  // the queries are the last tokens
    out.k_segment = out.key_mask;
    out.q_segment = out.key_mask + a.keys - q.shape[1];
    out.q_segment_stride = a.keys;
  }
  if (bias.present) {
    out.bias = pointer<void>(bias);
    out.bias_B = bias.shape[0];
    out.bias_H = bias.shape[1];
  }
  out.dropout = a.dropout;
  out.dropout_key = a.dropout_key;
  out.batch_offset = a.batch_offset;
  out.head_offset = a.head_offset;
  return out;
}

}  // namespace

void add_attention(Kernels& t) {
  t.attention.run = [](const Attention& a, const View& q, const View& k, const View& v, const View& mask,
                       const View& bias, const View& sinks, const View& out, const View& lse,
                       const View& workspace) {
    const auto run = [&](auto zero, auto of_q, auto of_kv) {
      using T = decltype(zero);
      using Q = decltype(of_q);
      using KV = decltype(of_kv);
      attention(shape_of(a, q, k), args_of(a, q, mask, bias, sinks), pointer<Q>(q), pointer<KV>(k),
                pointer<KV>(v), pointer<Q>(out), pointer<T>(lse), pointer<T>(workspace));
    };
    if (q.dtype == DType::bf16) return run(float{}, bf16{}, bf16{});
    visit_float(q.dtype, [&](auto zero) {
      if (k.dtype == DType::bf16) return run(zero, zero, bf16{});
      run(zero, zero, zero);
    });
  };
  t.attention_workspace = [](const Attention& a, const View& q, const View& k) {
    return attention_workspace(shape_of(a, q, k), args_of(a, q, {}, {}), q.dtype == DType::bf16,
                               k.dtype == DType::bf16);
  };
  t.attention_backward.run = [](const Attention& a, const View& q, const View& k, const View& v,
                                const View& out, const View& lse, const View& g, const View& mask,
                                const View& bias, const View& sinks, const View& dq, const View& dk,
                                const View& dv, const View& dbias, const View& workspace) {
    visit_activation(q.dtype, [&](auto zero, auto element) {
      using T = decltype(zero);
      using X = decltype(element);
      attention_backward(shape_of(a, q, k), args_of(a, q, mask, bias, sinks), pointer<X>(q), pointer<X>(k),
                         pointer<X>(v), pointer<X>(out), pointer<T>(lse), pointer<X>(g), pointer<X>(dq),
                         pointer<X>(dk), pointer<X>(dv), pointer<T>(dbias), pointer<T>(workspace));
    });
  };
  t.attention_backward_workspace = [](const Attention& a, const View& q, const View& k) {
    return attention_backward_workspace(shape_of(a, q, k), q.dtype == DType::bf16);
  };
}

}  // namespace redco::kernels

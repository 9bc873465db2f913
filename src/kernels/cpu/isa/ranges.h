// Range kernels of this folder, declared once per instruction set. They run on the calling thread.
#pragma once

#include "base/types.h"
#include "kernels/cpu/groups.h"
#include "kernels/cpu/products/micro_tiles.h"

namespace redco::kernels {

using u16 = std::uint16_t;

// The type of arithmetic with elements of type X.
template <class X>
using wide_t = std::conditional_t<std::is_same_v<X, bf16>, float, X>;

constexpr i64 kMaxScoreColumns = 128;

// One block of attention scores: rows x cols at s (row stride ld). Row i is query q0 + i, column j is key
// k0 + j.
template <class T>
struct ScoreBlock {
  T* s;
  i64 ld, rows, cols;
  i64 q0, k0;
  i64 shift;  // causal: query i attends to keys <= i + shift; window > 0: to keys > i + shift - window
  bool causal;
  i64 window;
  i64 ahead;  // >= 0: to keys <= i + shift + ahead
  T scale;
  T softcap;            // > 0: scores are softcap * tanh(scale s / softcap)
  const i32* key_mask;  // [Tk] of this batch, or null
  const i32* q_segment;
  const i32* k_segment;
  const T* bias;  // [Tq, Tk] of this batch and head, or null
  i64 bias_ld;
  T slope;  // of ALiBi; 0: none
  // Dropout: threshold on (word >> 8), 0 = none; keep_scale = 1 / (1 - rate).
  u32 drop_below;
  T keep_scale;
  u64 key;
  u32 c0, c1;
  bool whole_rows = false;  // backward: the block has every key of its rows
};

// Heads of one query: `groups` key heads of width D, each shared by `shared` heads (at most 8).
struct HeadRows {
  i64 groups, shared, D;
};

// The scalars of one AdamW step.
struct AdamWStep {
  float decay, beta1_rest, beta2, beta2_rest, sqrt_bias2, eps, step_size, grad_scale;
};

namespace baseline {
#include "kernels/cpu/isa/ranges.inc"
}
namespace avx2 {
#include "kernels/cpu/isa/ranges.inc"
}
namespace avx512 {
#include "kernels/cpu/isa/ranges.inc"
}

}  // namespace redco::kernels

// The instructions of Armv8-A (NEON) for src/kernels/cpu/isa (isa/registers.h has the contract).
#pragma once

#include <arm_neon.h>

#include "kernels/cpu/isa/fp16.h"

#define REDCO_KEEP(x) asm("" : "+w"(x))

namespace redco::kernels::REDCO_ISA {

constexpr int kBytes = 16, kRegisters = 32;
typedef float Floats __attribute__((vector_size(kBytes)));
typedef i32 Ints __attribute__((vector_size(kBytes)));
typedef std::int16_t Words __attribute__((vector_size(kBytes)));
typedef u32 Block __attribute__((vector_size(kBytes)));

// --- Conversions -------------------------------------------------------------------------------------------

REDCO_INLINE Floats floats_of(const bf16* p) {
  uint16x4_t half;
  __builtin_memcpy(&half, p, sizeof half);
  return __builtin_bit_cast(Floats, vshll_n_u16(half, 16));
}
REDCO_INLINE int8x8_t load_bytes(const void* p) {
  u32 word;
  __builtin_memcpy(&word, p, sizeof word);
  return vcreate_s8(word);
}
REDCO_INLINE Floats widened(int8x8_t bytes) {
  return __builtin_bit_cast(Floats, vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(bytes)))));
}
REDCO_INLINE Floats floats_of(const std::int8_t* p) { return widened(load_bytes(p)); }
REDCO_INLINE Floats floats_of_nibbles(const std::uint8_t* p, bool upper) {
  const uint8x8_t pairs = vreinterpret_u8_s8(load_bytes(p));
  return widened(vreinterpret_s8_u8(upper ? vshr_n_u8(pairs, 4) : vand_u8(pairs, vdup_n_u8(15))));
}
REDCO_INLINE Words words_of(const std::int8_t* p) { return __builtin_bit_cast(Words, vmovl_s8(vld1_s8(p))); }
REDCO_INLINE Block every_fourth(const std::uint8_t* p, i64 /*stride*/) {
  return __builtin_bit_cast(Block, vld1q_u8(p));
}

// --- Products of integers ----------------------------------------------------------------------------------

REDCO_INLINE Ints add_neighbours(Words a, Words b) {
  const auto x = __builtin_bit_cast(int16x8_t, a), y = __builtin_bit_cast(int16x8_t, b);
  const int32x4_t low = vmull_s16(vget_low_s16(x), vget_low_s16(y));
  return __builtin_bit_cast(Ints, vpaddq_s32(low, vmull_high_s16(x, y)));
}
REDCO_INLINE Words add_byte_neighbours(Block a, Block b) {
  const auto x = __builtin_bit_cast(int8x16_t, a), y = __builtin_bit_cast(int8x16_t, b);
  const int16x8_t low = vmull_s8(vget_low_s8(x), vget_low_s8(y));
  return __builtin_bit_cast(Words, vpaddq_s16(low, vmull_high_s8(x, y)));
}

// --- fp16 --------------------------------------------------------------------------------------------------

// Two numbers of fp16, in the first lanes.
REDCO_INLINE float32x4_t load_pair(const void* p) {
  u32 bits;
  __builtin_memcpy(&bits, p, sizeof bits);
  return vcvt_f32_f16(vreinterpret_f16_u32(vdup_n_u32(bits)));
}
REDCO_INLINE float scale_of(std::uint16_t bits) {
  return vgetq_lane_f32(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(bits))), 0);
}
REDCO_INLINE void scale_pair(const void* p, float& first, float& second) {
  const float32x4_t both = load_pair(p);
  first = vgetq_lane_f32(both, 0), second = vgetq_lane_f32(both, 1);
}
struct ScalePairs {
  Floats first, second;
};
REDCO_INLINE ScalePairs scale_pairs(const std::byte* p, i64 stride) {
  const auto two = [&](i64 j) {
    return vcombine_f32(vget_low_f32(load_pair(p + j * stride)),
                        vget_low_f32(load_pair(p + (j + 1) * stride)));
  };
  const float32x4_t low = two(0), high = two(2);
  return {__builtin_bit_cast(Floats, vuzp1q_f32(low, high)),
          __builtin_bit_cast(Floats, vuzp2q_f32(low, high))};
}
template <int N>
REDCO_INLINE void scales_times(const std::byte* p, i64 stride, float by, float (&to)[N]) {
  for (int j = 0; j < N; ++j) {
    std::uint16_t bits;
    __builtin_memcpy(&bits, p + j * stride, sizeof bits);
    to[j] = scale_of(bits) * by;
  }
}

// --- Philox ------------------------------------------------------------------------------------------------

struct Lanes {
  static constexpr int kCount = 2;
  uint64x2_t v;
};
REDCO_INLINE Lanes lanes(u64 x) { return {vdupq_n_u64(x)}; }
REDCO_INLINE Lanes iota() { return {vcombine_u64(vcreate_u64(0), vcreate_u64(1))}; }
REDCO_INLINE Lanes add(Lanes a, Lanes b) { return {vaddq_u64(a.v, b.v)}; }
REDCO_INLINE Lanes exclusive_or(Lanes a, Lanes b, Lanes c) { return {veorq_u64(veorq_u64(a.v, b.v), c.v)}; }
REDCO_INLINE Lanes multiply_low(Lanes a, Lanes b) { return {vmull_u32(vmovn_u64(a.v), vmovn_u64(b.v))}; }
REDCO_INLINE Lanes high(Lanes a) { return {vshrq_n_u64(a.v, 32)}; }
REDCO_INLINE void store_low(u32* to, Lanes a) { vst1_u32(to, vmovn_u64(a.v)); }

}  // namespace redco::kernels::REDCO_ISA

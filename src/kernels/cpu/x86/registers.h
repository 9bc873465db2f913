// The instructions of x86-64-v2, -v3 and -v4 for src/kernels/cpu/isa (isa/registers.h has the contract).
#pragma once

// A header of GCC 12 passes an undefined vector where all lanes are written (GCC bug 105593).
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include "kernels/cpu/isa/fp16.h"

#define REDCO_KEEP(x) asm("" : "+v"(x))

namespace redco::kernels::REDCO_ISA {

#if defined(__AVX512F__)
constexpr int kBytes = 64, kRegisters = 32;
typedef __m512i Register;
#elif defined(__AVX2__)
constexpr int kBytes = 32, kRegisters = 16;
typedef __m256i Register;
#else
constexpr int kBytes = 16, kRegisters = 16;
typedef __m128i Register;
#endif
typedef float Floats __attribute__((vector_size(kBytes)));
typedef i32 Ints __attribute__((vector_size(kBytes)));
typedef std::int16_t Words __attribute__((vector_size(kBytes)));
typedef u32 Block __attribute__((vector_size(kBytes)));

// --- Conversions -------------------------------------------------------------------------------------------

REDCO_INLINE Floats floats_of(const bf16* p) {
  // One instruction; the compiler's conversion of a vector takes four.
#if defined(__AVX512F__)
  constexpr __mmask16 kAll = 0xffff;  // without a mask GCC 12 warns
  const __m512i words =
      _mm512_maskz_cvtepu16_epi32(kAll, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  const __m512i wide = _mm512_maskz_slli_epi32(kAll, words, 16);
#elif defined(__AVX2__)
  const __m256i words = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  const __m256i wide = _mm256_slli_epi32(words, 16);
#else
  typedef std::uint16_t Half __attribute__((vector_size(kBytes / 2)));
  Half half;
  __builtin_memcpy(&half, p, sizeof half);
  const Block wide = __builtin_convertvector(half, Block) << 16;
#endif
  return __builtin_bit_cast(Floats, wide);
}

// The lower part of `bytes` holds W bytes.
REDCO_INLINE Floats widened(__m128i bytes) {
#if defined(__AVX512F__)
  const __m512i words = _mm512_maskz_cvtepi8_epi32(0xffff, bytes);  // without a mask GCC 12 warns
#elif defined(__AVX2__)
  const __m256i words = _mm256_cvtepi8_epi32(bytes);
#else
  const __m128i words = _mm_cvtepi8_epi32(bytes);
#endif
  return __builtin_convertvector(__builtin_bit_cast(Ints, words), Floats);
}
REDCO_INLINE __m128i load_bytes(const void* p) {
#if defined(__AVX512F__)
  return _mm_loadu_si128(static_cast<const __m128i*>(p));
#elif defined(__AVX2__)
  return _mm_loadl_epi64(static_cast<const __m128i*>(p));
#else
  i32 word;
  __builtin_memcpy(&word, p, sizeof word);
  return _mm_cvtsi32_si128(word);
#endif
}
REDCO_INLINE Floats floats_of(const std::int8_t* p) { return widened(load_bytes(p)); }
REDCO_INLINE Floats floats_of_nibbles(const std::uint8_t* p, bool upper) {
  const __m128i pairs = load_bytes(p);
  return widened(_mm_and_si128(upper ? _mm_srli_epi16(pairs, 4) : pairs, _mm_set1_epi8(15)));
}

// (GCC 12 converts a vector of bytes in two halves.)
REDCO_INLINE Words words_of(const std::int8_t* p) {
#if defined(__AVX512F__)
  return __builtin_bit_cast(
      Words,
      _mm512_maskz_cvtepi8_epi16(~__mmask32{0}, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
#elif defined(__AVX2__)
  return __builtin_bit_cast(Words,
                            _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#else
  return __builtin_bit_cast(Words, _mm_cvtepi8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
#endif
}

REDCO_INLINE Block every_fourth(const std::uint8_t* p, i64 stride) {
  const auto load = [&](i64 j) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + j * stride)); };
#if defined(__AVX512F__)
  __m512i x = _mm512_castsi128_si512(load(0));
  x = _mm512_mask_broadcast_i32x4(x, 0xf0, load(1));
  x = _mm512_mask_broadcast_i32x4(x, 0xf00, load(2));
  x = _mm512_mask_broadcast_i32x4(x, 0xf000, load(3));
#elif defined(__AVX2__)
  const __m256i x = _mm256_inserti128_si256(_mm256_castsi128_si256(load(0)), load(1), 1);
#else
  (void)stride;
  const __m128i x = load(0);
#endif
  return __builtin_bit_cast(Block, x);
}

// --- Products of integers ----------------------------------------------------------------------------------

REDCO_INLINE Ints add_neighbours(Words a, Words b) {
  const auto x = __builtin_bit_cast(Register, a), y = __builtin_bit_cast(Register, b);
#if defined(__AVX512F__)
  return __builtin_bit_cast(Ints, _mm512_madd_epi16(x, y));
#elif defined(__AVX2__)
  return __builtin_bit_cast(Ints, _mm256_madd_epi16(x, y));
#else
  return __builtin_bit_cast(Ints, _mm_madd_epi16(x, y));
#endif
}
REDCO_INLINE Words add_byte_neighbours(Block unsigned_bytes, Block signed_bytes) {
  const auto x = __builtin_bit_cast(Register, unsigned_bytes), y = __builtin_bit_cast(Register, signed_bytes);
#if defined(__AVX512F__)
  return __builtin_bit_cast(Words, _mm512_maddubs_epi16(x, y));
#elif defined(__AVX2__)
  return __builtin_bit_cast(Words, _mm256_maddubs_epi16(x, y));
#else
  return __builtin_bit_cast(Words, _mm_maddubs_epi16(x, y));
#endif
}
#if defined(__AVX512F__)
#define REDCO_BYTE_PRODUCTS
// The four signed bytes at `part`, for each lane.
REDCO_INLINE void add_byte_products(Ints& sums, Block unsigned_bytes, const std::int8_t* part) {
  // Not an intrinsic: those need a function that is compiled for AVX512-VNNI.
  asm("vpdpbusd %2%{1to16%}, %1, %0"
      : "+v"(sums)
      : "v"(unsigned_bytes), "m"(*reinterpret_cast<const std::int8_t(*)[4]>(part)));
}
#endif

// --- fp16 --------------------------------------------------------------------------------------------------

REDCO_INLINE float scale_of(std::uint16_t bits) {
#if defined(__F16C__)
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)));
#else
  return fp16_value(bits);
#endif
}
REDCO_INLINE i32 load_pair(const void* p) {
  i32 bits;
  __builtin_memcpy(&bits, p, sizeof bits);
  return bits;
}
REDCO_INLINE void scale_pair(const void* p, float& first, float& second) {
#if defined(__F16C__)
  const __m128 both = _mm_cvtph_ps(_mm_cvtsi32_si128(load_pair(p)));
  first = both[0], second = both[1];
#else
  const u32 bits = static_cast<u32>(load_pair(p));
  first = fp16_value(bits & 0xffffu), second = fp16_value(bits >> 16);
#endif
}
struct ScalePairs {
  Floats first, second;
};
REDCO_INLINE ScalePairs scale_pairs(const std::byte* p, i64 stride) {
#if defined(__F16C__)
  const auto four = [&](i64 j) {
    __m128i x = _mm_cvtsi32_si128(load_pair(p + j * stride));
    x = _mm_insert_epi32(x, load_pair(p + (j + 1) * stride), 1);
    x = _mm_insert_epi32(x, load_pair(p + (j + 2) * stride), 2);
    return _mm_insert_epi32(x, load_pair(p + (j + 3) * stride), 3);
  };
  struct Halves {
    __m128i first, second;
  };
  const auto eight = [&](i64 j) {
    const __m128i order = _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    const __m128i low = _mm_shuffle_epi8(four(j), order), high = _mm_shuffle_epi8(four(j + 4), order);
    return Halves{_mm_unpacklo_epi64(low, high), _mm_unpackhi_epi64(low, high)};
  };
  const Halves first = eight(0);
#if defined(__AVX512F__)
  const Halves second = eight(8);
  const auto wide = [](__m128i low, __m128i high) {
    const __m256i halves = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
    return __builtin_bit_cast(Floats, _mm512_maskz_cvtph_ps(static_cast<__mmask16>(-1), halves));
  };
  return {wide(first.first, second.first), wide(first.second, second.second)};
#else
  return {__builtin_bit_cast(Floats, _mm256_cvtph_ps(first.first)),
          __builtin_bit_cast(Floats, _mm256_cvtph_ps(first.second))};
#endif
#else
  ScalePairs v;
  for (int j = 0; j < kBytes / 4; ++j) {
    float first, second;
    scale_pair(p + j * stride, first, second);
    v.first[j] = first, v.second[j] = second;
  }
  return v;
#endif
}
template <int N>
REDCO_INLINE void scales_times(const std::byte* p, i64 stride, float by, float (&to)[N]) {
  const auto bits = [&](int j) {
    std::uint16_t x;
    __builtin_memcpy(&x, p + j * stride, sizeof x);
    return x;
  };
#if defined(__F16C__)
  if constexpr (N == 4) {
    const auto word = [&](int j) { return static_cast<short>(bits(j)); };
    const __m128i four = _mm_setr_epi16(word(0), word(1), word(2), word(3), 0, 0, 0, 0);
    _mm_storeu_ps(to, _mm_mul_ps(_mm_cvtph_ps(four), _mm_set1_ps(by)));
    // Read from memory they are broadcast by the load; from a register each takes a shuffle.
    asm("" : "+m"(to));
    return;
  }
#endif
  for (int j = 0; j < N; ++j) to[j] = scale_of(bits(j)) * by;
}

// --- Philox
// -------------------------------------------------------------------------------------------------

#if defined(__AVX512F__)
struct Lanes {
  static constexpr int kCount = 8;
  __m512i v;
};
REDCO_INLINE Lanes lanes(u64 x) { return {_mm512_set1_epi64(static_cast<long long>(x))}; }
REDCO_INLINE Lanes iota() { return {_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0)}; }
REDCO_INLINE Lanes add(Lanes a, Lanes b) { return {_mm512_add_epi64(a.v, b.v)}; }
REDCO_INLINE Lanes exclusive_or(Lanes a, Lanes b, Lanes c) {
  return {_mm512_ternarylogic_epi64(a.v, b.v, c.v, 0x96)};
}
REDCO_INLINE Lanes multiply_low(Lanes a, Lanes b) { return {_mm512_mul_epu32(a.v, b.v)}; }
REDCO_INLINE Lanes high(Lanes a) { return {_mm512_srli_epi64(a.v, 32)}; }
REDCO_INLINE void store_low(u32* to, Lanes a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi64_epi32(a.v));
}
#elif defined(__AVX2__)
struct Lanes {
  static constexpr int kCount = 4;
  __m256i v;
};
REDCO_INLINE Lanes lanes(u64 x) { return {_mm256_set1_epi64x(static_cast<long long>(x))}; }
REDCO_INLINE Lanes iota() { return {_mm256_set_epi64x(3, 2, 1, 0)}; }
REDCO_INLINE Lanes add(Lanes a, Lanes b) { return {_mm256_add_epi64(a.v, b.v)}; }
REDCO_INLINE Lanes exclusive_or(Lanes a, Lanes b, Lanes c) {
  return {_mm256_xor_si256(_mm256_xor_si256(a.v, b.v), c.v)};
}
REDCO_INLINE Lanes multiply_low(Lanes a, Lanes b) { return {_mm256_mul_epu32(a.v, b.v)}; }
REDCO_INLINE Lanes high(Lanes a) { return {_mm256_srli_epi64(a.v, 32)}; }
REDCO_INLINE void store_low(u32* to, Lanes a) {
  const __m256i packed = _mm256_permutevar8x32_epi32(a.v, _mm256_set_epi32(7, 5, 3, 1, 6, 4, 2, 0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(packed));
}
#else
struct Lanes {
  static constexpr int kCount = 2;
  __m128i v;
};
REDCO_INLINE Lanes lanes(u64 x) { return {_mm_set1_epi64x(static_cast<long long>(x))}; }
REDCO_INLINE Lanes iota() { return {_mm_set_epi64x(1, 0)}; }
REDCO_INLINE Lanes add(Lanes a, Lanes b) { return {_mm_add_epi64(a.v, b.v)}; }
REDCO_INLINE Lanes exclusive_or(Lanes a, Lanes b, Lanes c) {
  return {_mm_xor_si128(_mm_xor_si128(a.v, b.v), c.v)};
}
REDCO_INLINE Lanes multiply_low(Lanes a, Lanes b) { return {_mm_mul_epu32(a.v, b.v)}; }
REDCO_INLINE Lanes high(Lanes a) { return {_mm_srli_epi64(a.v, 32)}; }
REDCO_INLINE void store_low(u32* to, Lanes a) {
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_shuffle_epi32(a.v, 0x08));
}
#endif

}  // namespace redco::kernels::REDCO_ISA

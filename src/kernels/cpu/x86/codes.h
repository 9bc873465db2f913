// Codes of quantized blocks on x86-64 (isa/codes.h has the contract).
#pragma once

#include "kernels/cpu/isa/codes.h"

namespace redco::kernels::REDCO_ISA {

REDCO_INLINE void nibbles_of(const std::uint8_t* p, Codes& to) {
  const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
#if defined(__AVX2__)
  const __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(x), _mm_srli_epi16(x, 4), 1);
  to = __builtin_bit_cast(Codes, _mm256_and_si256(both, _mm256_set1_epi8(15)));
#else
  const __m128i mask = _mm_set1_epi8(15);
  const __m128i halves[2] = {_mm_and_si128(x, mask), _mm_and_si128(_mm_srli_epi16(x, 4), mask)};
  __builtin_memcpy(&to, halves, sizeof to);
#endif
}
REDCO_INLINE void fifth_of(const std::uint8_t* p, Codes& to) {
  i32 bits;
  __builtin_memcpy(&bits, p, sizeof bits);
  constexpr i64 kBits = static_cast<i64>(0x8040201008040201ULL);
#if defined(__AVX2__)
  const __m256i order = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
  const __m256i bit = _mm256_set1_epi64x(kBits);
  const __m256i of_code = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(bits), order), bit);
  to = __builtin_bit_cast(Codes, _mm256_and_si256(_mm256_cmpeq_epi8(of_code, bit), _mm256_set1_epi8(16)));
#else
  const __m128i bit = _mm_set1_epi64x(kBits);
  const auto half = [&](__m128i order) {
    const __m128i of_code = _mm_and_si128(_mm_shuffle_epi8(_mm_set1_epi32(bits), order), bit);
    return _mm_and_si128(_mm_cmpeq_epi8(of_code, bit), _mm_set1_epi8(16));
  };
  const __m128i halves[2] = {half(_mm_set_epi64x(0x0101010101010101, 0)),
                             half(_mm_set_epi64x(0x0303030303030303, 0x0202020202020202))};
  __builtin_memcpy(&to, halves, sizeof to);
#endif
}

REDCO_INLINE void floats_of(const Codes& codes, Floats (&to)[kFloatsOfCodes]) {
  constexpr int kLanes = kBytes / 4;
  __m128i halves[2];
  __builtin_memcpy(halves, &codes, sizeof halves);
#pragma GCC unroll 8
  for (int v = 0; v < kFloatsOfCodes; ++v) {
    const __m128i half = halves[v * kLanes / 16];
#if defined(__AVX512F__)
    const auto words = __builtin_bit_cast(Ints, _mm512_maskz_cvtepi8_epi32(0xffff, half));
#elif defined(__AVX2__)
    const auto words =
        __builtin_bit_cast(Ints, _mm256_cvtepi8_epi32(v % 2 == 0 ? half : _mm_unpackhi_epi64(half, half)));
#else
    const auto words = __builtin_bit_cast(Ints, _mm_cvtepi8_epi32(v % 4 == 0   ? half
                                                                  : v % 4 == 1 ? _mm_srli_si128(half, 4)
                                                                  : v % 4 == 2 ? _mm_srli_si128(half, 8)
                                                                               : _mm_srli_si128(half, 12)));
#endif
    to[v] = __builtin_convertvector(words, Floats);
  }
}

REDCO_INLINE void words_of(const Codes& codes, Words (&w)[kWordsOfCodes]) {
#if defined(__AVX512F__)
  w[0] = __builtin_bit_cast(Words,
                            _mm512_maskz_cvtepi8_epi16(~__mmask32{0}, __builtin_bit_cast(__m256i, codes)));
#else
  __m128i halves[2];
  __builtin_memcpy(halves, &codes, sizeof halves);
#if defined(__AVX2__)
  for (int v = 0; v < 2; ++v) w[v] = __builtin_bit_cast(Words, _mm256_cvtepi8_epi16(halves[v]));
#else
  for (int v = 0; v < 4; ++v)
    w[v] = __builtin_bit_cast(
        Words, _mm_cvtepi8_epi16(v % 2 == 0 ? halves[v / 2] : _mm_srli_si128(halves[v / 2], 8)));
#endif
#endif
}
REDCO_INLINE void times_halves(Words (&w)[kWordsOfCodes], std::int16_t first, std::int16_t second) {
#if defined(__AVX512F__)
  w[0] *= __builtin_bit_cast(Words, _mm512_mask_set1_epi16(_mm512_set1_epi16(first), 0xffff0000u, second));
#else
  for (int v = 0; v < kWordsOfCodes; ++v) {
    const std::int16_t by = v < kWordsOfCodes / 2 ? first : second;
#if defined(__AVX2__)
    w[v] *= __builtin_bit_cast(Words, _mm256_set1_epi16(by));
#else
    w[v] *= __builtin_bit_cast(Words, _mm_set1_epi16(by));
#endif
  }
#endif
}

}  // namespace redco::kernels::REDCO_ISA

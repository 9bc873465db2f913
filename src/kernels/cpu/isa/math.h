// Elementary functions that vectorize: no branches, tables or calls. Only for the files of this folder.
//
// fp32: exp, log, tanh, erf within about 2 ulp. Coefficients are minimax fits (Lawson's iteration on
// Chebyshev nodes in fp64) of the functions in the comments next to them. NaN gives NaN; exp(-inf) = 0, exp(>
// 88.7) = inf. fp64 calls libm.
#pragma once

#include <limits>

#include "base/types.h"

namespace redco::kernels::REDCO_ISA {

#define REDCO_INLINE static inline __attribute__((always_inline))

REDCO_INLINE float from_bits(u32 u) { return __builtin_bit_cast(float, u); }
REDCO_INLINE u32 to_bits(float x) { return __builtin_bit_cast(u32, x); }

// A NaN keeps its sign and upper bits and becomes quiet; rounding could carry its mantissa into inf.
REDCO_INLINE u32 bf16_bits(u32 u) {
  const u32 rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  const u32 nan = (u >> 16) | 0x40u;
  return (u & 0x7fffffffu) > 0x7f800000u ? nan : rounded;
}

// Element i in the type of arithmetic.
template <class T>
REDCO_INLINE T get(const T* x, i64 i) {
  return x[i];
}
REDCO_INLINE float get(const bf16* x, i64 i) { return from_bits(static_cast<u32>(x[i].bits) << 16); }
template <class T>
REDCO_INLINE void put(T* y, i64 i, T value) {
  y[i] = value;
}
REDCO_INLINE void put(bf16* y, i64 i, float value) {
  y[i].bits = static_cast<std::uint16_t>(bf16_bits(to_bits(value)));
}

template <class T>
REDCO_INLINE T abs_(T x) {
  return x < 0 ? -x : x;
}

// The maximum of `start` and n elements; NaN is ignored. The parts of an OpenMP max reduction may begin with
// the lowest finite number (in clang they do), so that result is checked.
template <class T, class X>
REDCO_INLINE T max_of(T start, const X* x, i64 n) {
  T m = start;
#pragma omp simd reduction(max : m)
  for (i64 i = 0; i < n; ++i) m = get(x, i) > m ? get(x, i) : m;
  if (m != std::numeric_limits<T>::lowest()) return m;
  m = start;
  for (i64 i = 0; i < n; ++i) m = get(x, i) > m ? get(x, i) : m;
  return m;
}

// Rows shorter than this don't fill a vector: to enter its loop takes longer than to visit their elements.
constexpr i64 kShort = 8;

// e^x = 2^n e^r, n = round(x / ln 2), |r| <= ln(2) / 2; the lowest bits of `bits` are those of n.
struct ExpParts {
  float e_to_r;
  u32 bits;
};
constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
REDCO_INLINE ExpParts exp_parts(float x) {
  const float z = x * 1.44269504f + kRound;
  const float n = z - kRound;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;  // ln 2 in two parts, the first exact times n
  float p = 1.381462708e-03f;                                   // (e^r - 1 - r) / r^2
  p = p * r + 8.368714766e-03f;
  p = p * r + 4.166838743e-02f;
  p = p * r + 1.666652065e-01f;
  p = p * r + 4.999999345e-01f;
  return {(p * r) * r + r + 1.0f, to_bits(z)};
}
// 2^n is split into two factors to reach subnormals and infinity.
REDCO_INLINE float exp_(float x) {
  x = x > 89.0f ? 89.0f : x;  // e^89 overflows, e^-104 rounds to 0
  x = x < -104.0f ? -104.0f : x;
  const ExpParts e = exp_parts(x);
  const i32 i = static_cast<i32>(e.bits - to_bits(kRound));
  const i32 half = i >> 1;
  return e.e_to_r * from_bits(static_cast<u32>(half + 127) << 23) *
         from_bits(static_cast<u32>(i - half + 127) << 23);
}
REDCO_INLINE double exp_(double x) { return __builtin_exp(x); }

// log x = e ln 2 + log(1 + f), 1 + f in [sqrt(1/2), sqrt 2).
REDCO_INLINE float log_(float x) {
  const bool tiny = x < 1.17549435e-38f;  // subnormal: scaled by 2^23
  const float y = tiny ? x * 8388608.0f : x;
  const u32 u = to_bits(y) - 0x3f3504f3u;  // of sqrt(1/2)
  const i32 e = static_cast<i32>(u) >> 23;
  const float f = from_bits((u & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  const float n = static_cast<float>(tiny ? e - 23 : e);
  float p = 6.746885256e-02f;  // (log(1 + f) - f + f^2 / 2) / f^3
  p = p * f - 1.167580515e-01f;
  p = p * f + 1.188813007e-01f;
  p = p * f - 1.240555802e-01f;
  p = p * f + 1.421955264e-01f;
  p = p * f - 1.666799787e-01f;
  p = p * f + 2.000211874e-01f;
  p = p * f - 2.500000956e-01f;
  p = p * f + 3.333331260e-01f;
  const float f2 = f * f;
  float r = p * f * f2 - n * 2.12194440e-4f - 0.5f * f2 + f + n * 0.693359375f;
  r = x > 3.40282347e38f ? x : r;  // inf
  r = x == 0 ? -__builtin_inff() : r;
  r = x < 0 ? __builtin_nanf("") : r;
  return x != x ? x : r;
}
REDCO_INLINE double log_(double x) { return __builtin_log(x); }

// log(1 + e) for e in [0, 1]; the ratio corrects the rounding of 1 + e.
REDCO_INLINE float log1p_(float e) {
  const float u = 1.0f + e;
  const float d = u - 1.0f;
  const float r = log_(u) * (e / (d == 0 ? 1.0f : d));
  return d == 0 ? e : r;
}
REDCO_INLINE double log1p_(double e) { return __builtin_log1p(e); }

REDCO_INLINE float tanh_(float x) {
  constexpr u32 kSign = 0x80000000u;
  const float s = x * x;
  float p = -5.705016542e-03f;  // (tanh(x) / x - 1) / x^2, |x| < 0.625
  p = p * s + 2.063911794e-02f;
  p = p * s - 5.373972639e-02f;
  p = p * s + 1.333144237e-01f;
  p = p * s - 3.333328195e-01f;
  const float small = x + x * (s * p);
  const float a = from_bits(to_bits(x) & ~kSign);
  const ExpParts e = exp_parts(2.0f * (a > 9.5f ? 9.5f : a));  // tanh(9.5) rounds to 1
  const float power = from_bits((e.bits << 23) + to_bits(1.0f));
  const float big = 1.0f - 2.0f / (e.e_to_r * power + 1.0f);
  return a < 0.625f ? small : from_bits(to_bits(big) | (to_bits(x) & kSign));
}
REDCO_INLINE double tanh_(double x) { return __builtin_tanh(x); }

template <class T>
REDCO_INLINE T sigmoid_(T x) {
  return T(1) / (T(1) + exp_(-x));
}

// erf on |x| < 0.95 as x + x P(x^2).
REDCO_INLINE float erf_small(float x) {
  const float s = x * x;
  float p = 7.853869198e-05f;  // erf(x) / x - 1
  p = p * s - 8.010196017e-04f;
  p = p * s + 5.188327960e-03f;
  p = p * s - 2.685381208e-02f;
  p = p * s + 1.128358515e-01f;
  p = p * s - 3.761262582e-01f;
  p = p * s + 1.283791657e-01f;
  return x + x * p;
}
// erfc(t) e^(t^2) for t >= 0.9, as q P(q) with q = 1 / (1 + 0.4 t).
REDCO_INLINE float erfcx_big(float t) {
  const float q = 1.0f / (1.0f + 0.4f * t);
  float p = -1.165658884e-01f;
  p = p * q + 2.444255052e-01f;
  p = p * q + 7.371448479e-03f;
  p = p * q + 2.135511631e-01f;
  p = p * q + 1.986291524e-01f;
  p = p * q + 2.267167877e-01f;
  p = p * q + 2.256254777e-01f;
  return p * q;
}
constexpr float kErfCut = 0.95f;

REDCO_INLINE float erf_(float x) {
  const float a = abs_(x);
  const float big = 1.0f - exp_(-a * a) * erfcx_big(a > 10.0f ? 10.0f : a);
  const float r = x < 0 ? -big : big;
  return a < kErfCut ? erf_small(x) : (x != x ? x : r);
}
REDCO_INLINE double erf_(double x) { return __builtin_erf(x); }

// The normal distribution Phi(x) = erfc(-x / sqrt 2) / 2 without cancellation for x << 0, and e = exp(-x^2 /
// 2).
template <class T>
struct PhiAndExp {
  T phi, e;
};
REDCO_INLINE PhiAndExp<float> normal_(float x) {
  const float t = x * 0.707106781f;
  const float a = abs_(t);
  const float e = exp_(-0.5f * (x * x));
  const float tail = 0.5f * e * erfcx_big(a > 10.0f ? 10.0f : a);
  const float big = x < 0 ? tail : 1.0f - tail;
  const float small = 0.5f + 0.5f * erf_small(t);
  return {a < kErfCut ? small : (x != x ? x : big), e};
}
REDCO_INLINE PhiAndExp<double> normal_(double x) {
  return {0.5 * __builtin_erfc(-x * 0.70710678118654752440), __builtin_exp(-0.5 * x * x)};
}

REDCO_INLINE float sqrt_(float x) { return __builtin_sqrtf(x); }
REDCO_INLINE double sqrt_(double x) { return __builtin_sqrt(x); }
REDCO_INLINE float sin_(float x) { return __builtin_sinf(x); }
REDCO_INLINE double sin_(double x) { return __builtin_sin(x); }
REDCO_INLINE float cos_(float x) { return __builtin_cosf(x); }
REDCO_INLINE double cos_(double x) { return __builtin_cos(x); }

}  // namespace redco::kernels::REDCO_ISA

// Weights to groups of 4 bits with a scale and a minimum. Each of several numbers of steps between the least
// and the greatest weight gives codes; for these, scale and minimum by least squares are a closed form. The
// codes with the least weighted error are used (the idea of llama.cpp's make_qkx2_quants). Large weights
// count more: weight i has the importance |w_i| + the mean of all |w|.
//
// The sums are over integers, so every instruction set makes the same groups: weights are 14-bit words from
// the least (0) to the greatest one, importances have 8 bits. The largest sum is 32 * 254 * 16383 * 15 <
// 2^31.
#include "kernels/cpu/isa/group_fit.h"

#include "kernels/cpu/isa/fp16.h"
#include "kernels/cpu/isa/ranges.h"

namespace redco::kernels::REDCO_ISA {
namespace {

constexpr i32 kTopCode = 15, kTop = 16383, kTopPart = 127;
constexpr int kShift = 26;
// The steps, in tenths: near 15, where most groups have their best fit, and whole ones, for weights that have
// been rounded to codes before.
constexpr i32 kTenths[] = {140, 141, 142, 143, 144, 145, 146, 147, 148, 149, 150, 151, 152, 153,
                           154, 155, 156, 157, 158, 159, 160, 130, 120, 110, 100, 90,  80};

struct Integers {
  i32 words[kGroup], parts[kGroup];
};

// The nearest integer to x in [0, 2^22): without a floating addition, which the compiler might fuse.
REDCO_INLINE i32 rounded(float twice) { return (static_cast<i32>(twice) + 1) >> 1; }

void to_integers(const float* x, i64 n, float low, float range, float most, Integers& to) {
  const float by = 2.0f * kTop / range, part = 2.0f * kTopPart / most;
  i32 sum = 0;
  for (i64 i = 0; i < kGroup; ++i) {
    to.words[i] = rounded((x[i] - low) * by);
    to.words[i] = to.words[i] > kTop ? kTop : to.words[i];
    to.parts[i] = i < n ? rounded(abs_(x[i]) * part) : 0;
    sum += to.parts[i];
  }
  const i32 mean = sum / static_cast<i32>(n);
  for (i64 i = 0; i < kGroup; ++i) to.parts[i] = i < n ? to.parts[i] + mean : 0;
}

REDCO_INLINE u32 code_of(i32 word, u32 factor) {
  const u32 q = (static_cast<u32>(word) * factor + (1u << (kShift - 1))) >> kShift;
  return q < kTopCode ? q : kTopCode;
}
REDCO_INLINE u32 factor_of(i32 tenths) {
  return (static_cast<u32>(tenths) * ((1u << kShift) / 10) + kTop / 2) / kTop;
}

// word = slope * code + start, by least squares; gain: what the slope takes from the weighted error.
struct Fit {
  double slope = 0, start = 0, gain = -1;
};
Fit fit_of(const Integers& of, i64 sp, i64 spw, u32 factor) {
  i32 pq = 0, pqq = 0, pqw = 0;
  for (i64 i = 0; i < kGroup; ++i) {
    const i32 q = static_cast<i32>(code_of(of.words[i], factor)), p = of.parts[i] * q;
    pq += p;
    pqq += p * q;
    pqw += p * of.words[i];
  }
  const i64 divisor = sp * pqq - i64{pq} * pq, slope = sp * pqw - spw * pq;
  if (divisor <= 0 || slope <= 0) return {};
  const double s = static_cast<double>(slope), d = static_cast<double>(divisor);
  return {s / d, static_cast<double>(spw * pqq - i64{pq} * pqw) / d, s * s / d};
}

// Scale and minimum in fp16, with `minimum` where code 0 is, if they hold the first n weights exactly.
REDCO_INLINE bool is_exact(const float* x, i64 n, float minimum, float end, u32 top, u32& scale, u32& low) {
  low = fp16_bits(to_bits(minimum));
  scale = fp16_bits(to_bits((end - minimum) / static_cast<float>(top)));
  const float step = fp16_value(scale), start = fp16_value(low);
  bool exact = start - minimum == 0;
  for (i64 i = 0; i < n && exact; ++i) {
    const float product = step * static_cast<float>(nearest(x[i] - start, step, 0, kTopCode));
    exact = product + start == x[i];
  }
  return exact;
}

}  // namespace

void fit_group(const float* x, i64 n, Group4& g) {
  float low = x[0], high = x[0];
  for (i64 i = 1; i < n; ++i) {
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
  }
  constexpr float kTop16 = 65504.0f, kTiny = 1e-30f;  // below, a factor would overflow
  const float range = high - low, most = -low > high ? -low : high;
  u32 scale = 0, minimum = fp16_bits(to_bits(low));
  if (!all_finite(x) || most > kTop16 || range > kTop16) {
    scale = minimum = kNan16;
  } else if (range > kTiny) {
    Integers of;
    float filled[kGroup];
    for (i64 i = 0; i < kGroup; ++i) filled[i] = i < n ? x[i] : low;
    to_integers(filled, n, low, range, most, of);
    i64 sp = 0, spw = 0;
    for (i64 i = 0; i < kGroup; ++i) sp += of.parts[i], spw += i64{of.parts[i]} * of.words[i];
    Fit best;
    u32 top = kTopCode;
    for (const i32 tenths : kTenths) {
      const u32 factor = factor_of(tenths);
      const Fit fit = fit_of(of, sp, spw, factor);
      if (fit.gain > best.gain) {
        best = fit;
        top = code_of(kTop, factor);
      }
    }
    u32 s = 0, m = 0;
    if (is_exact(x, n, low, high, top, s, m) || is_exact(x, n, high, low, top, s, m)) {
      scale = s, minimum = m;
    } else {
      const double unit = static_cast<double>(range) / kTop;
      const float start = static_cast<float>(best.start * unit);  // rounded before it is added
      scale = fp16_bits(to_bits(static_cast<float>(best.slope * unit)));
      minimum = fp16_bits(to_bits(start + low));
    }
  }
  g.scale = static_cast<std::uint16_t>(scale);
  g.minimum = static_cast<std::uint16_t>(minimum);
  const float step = fp16_value(scale), start = fp16_value(minimum);
  for (i64 i = 0; i < kGroup / 2; ++i) {
    const i64 j = i + kGroup / 2;
    const i32 first = i < n ? nearest(x[i] - start, step, 0, kTopCode) : 0;
    const i32 second = j < n ? nearest(x[j] - start, step, 0, kTopCode) : 0;
    g.values[i] = static_cast<std::uint8_t>(first | second << 4);
  }
}

}  // namespace redco::kernels::REDCO_ISA

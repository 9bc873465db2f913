#include "gguf/quantize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/half.h"

namespace redco::gguf {

namespace {

void put_half(float x, unsigned char* to) {
  const std::uint16_t h = half_of_float(x);
  to[0] = static_cast<unsigned char>(h & 255);
  to[1] = static_cast<unsigned char>(h >> 8);
}
// What a reader sees of a number that is stored as a half.
float as_half(float x) { return float_of_half(half_of_float(x)); }

int nearest(float x, int low, int high) {
  return std::clamp(static_cast<int>(std::lrint(std::clamp(x, -1e6F, 1e6F))), low, high);
}

// d and codes in [low, high] for which the sum of w (d q - x)^2 is small: d from each of several divisors of
// the largest number, then by least squares for its codes. Returns d.
float symmetric(const float* x, const float* w, int n, int low, int high, int* q) {
  float largest = 0;
  for (int i = 0; i < n; ++i)
    if (std::abs(x[i]) > std::abs(largest)) largest = x[i];
  std::fill(q, q + n, 0);
  if (largest == 0) return 0;
  float best = 0;
  double gain = -1;  // of (sum w x q)^2 / sum w q^2, which the error falls by
  for (int step = -9; step <= 9; ++step) {
    const float inverse = -(static_cast<float>(-low) + 0.1F * static_cast<float>(step)) / largest;
    double xq = 0, qq = 0;
    for (int i = 0; i < n; ++i) {
      const double code = nearest(inverse * x[i], low, high);
      xq += static_cast<double>(w[i]) * static_cast<double>(x[i]) * code;
      qq += static_cast<double>(w[i]) * code * code;
    }
    if (qq > 0 && xq * xq / qq > gain) {
      gain = xq * xq / qq;
      best = static_cast<float>(xq / qq);
    }
  }
  for (int i = 0; best != 0 && i < n; ++i) q[i] = nearest(x[i] / best, low, high);
  return best;
}

struct Affine {
  float d = 0, m = 0;  // x = d q + m
};
// The same for x = d q + m with codes in [0, high], and m <= 0 if `below`.
Affine affine(const float* x, const float* w, int n, int high, bool below) {
  float low = x[0], top = x[0];
  for (int i = 1; i < n; ++i) {
    low = std::min(low, x[i]);
    top = std::max(top, x[i]);
  }
  if (below) low = std::min(low, 0.F);
  if (top <= low) return {0, low};
  Affine best{(top - low) / static_cast<float>(high), low};
  const auto error_of = [&](const Affine& a) {
    double sum = 0;
    for (int i = 0; i < n; ++i) {
      const int code = a.d == 0 ? 0 : nearest((x[i] - a.m) / a.d, 0, high);
      const double e = static_cast<double>(a.d) * code + static_cast<double>(a.m) - static_cast<double>(x[i]);
      sum += static_cast<double>(w[i]) * e * e;
    }
    return sum;
  };
  double least = error_of(best);
  for (int step = 0; step <= 20; ++step) {
    const float inverse = (0.1F * static_cast<float>(step) - 1 + static_cast<float>(high)) / (top - low);
    double sw = 0, sx = 0, sq = 0, sqq = 0, sxq = 0;
    for (int i = 0; i < n; ++i) {
      const double code = nearest(inverse * (x[i] - low), 0, high), weight = static_cast<double>(w[i]),
                   value = static_cast<double>(x[i]);
      sw += weight;
      sx += weight * value;
      sq += weight * code;
      sqq += weight * code * code;
      sxq += weight * value * code;
    }
    const double det = sw * sqq - sq * sq;
    if (det <= 0) continue;
    double d = (sw * sxq - sx * sq) / det, m = (sqq * sx - sq * sxq) / det;
    if (below && m > 0) {
      m = 0;
      d = sqq > 0 ? sxq / sqq : 0;
    }
    const Affine a{static_cast<float>(d), static_cast<float>(m)};
    if (const double e = error_of(a); e < least) {
      least = e;
      best = a;
    }
  }
  return best;
}

void put_nibbles(const int* q, int n, unsigned char* to) {
  for (int i = 0; i < n / 2; ++i) to[i] = static_cast<unsigned char>(q[i] | q[i + n / 2] << 4);
}

constexpr std::array<float, 32> kEven = [] {
  std::array<float, 32> w{};
  w.fill(1);
  return w;
}();

void block_q8(const float* x, unsigned char* to) {
  float largest = 0;
  for (int i = 0; i < 32; ++i) largest = std::max(largest, std::abs(x[i]));
  const float d = largest / 127;
  put_half(d, to);
  for (int i = 0; i < 32; ++i)
    to[2 + i] = static_cast<unsigned char>(d == 0 ? 0 : static_cast<int>(std::round(x[i] / d)));
}

void block_q4_0(const float* x, unsigned char* to) {
  int q[32];
  const float d = as_half(symmetric(x, kEven.data(), 32, -8, 7, q));
  for (int i = 0; i < 32; ++i) q[i] = d == 0 ? 8 : nearest(x[i] / d, -8, 7) + 8;
  put_half(d, to);
  put_nibbles(q, 32, to + 2);
}

void block_q4_1(const float* x, unsigned char* to) {
  const Affine a = affine(x, kEven.data(), 32, 15, false);
  const float d = as_half(a.d), m = as_half(a.m);
  int q[32];
  for (int i = 0; i < 32; ++i) q[i] = d == 0 ? 0 : nearest((x[i] - m) / d, 0, 15);
  put_half(d, to);
  put_half(m, to + 2);
  put_nibbles(q, 32, to + 4);
}

// Large weights count more, as in ggml: their errors move the outputs most.
void importance(const float* x, int n, float* w) {
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += x[i] * x[i];
  const float mean = std::sqrt(sum / static_cast<float>(n));
  for (int i = 0; i < n; ++i) w[i] = mean + std::abs(x[i]);
}

void block_q4_k(const float* x, unsigned char* to) {
  std::array<Affine, 8> parts;
  float most_d = 0, most_m = 0;
  for (int p = 0; p < 8; ++p) {
    float w[32];
    importance(x + 32 * p, 32, w);
    parts[p] = affine(x + 32 * p, w, 32, 15, true);
    most_d = std::max(most_d, parts[p].d);
    most_m = std::max(most_m, -parts[p].m);
  }
  const float d = as_half(most_d / 63), m = as_half(most_m / 63);
  std::array<int, 8> scales, minima;
  for (int p = 0; p < 8; ++p) {
    scales[p] = d == 0 ? 0 : nearest(parts[p].d / d, 0, 63);
    minima[p] = m == 0 ? 0 : nearest(-parts[p].m / m, 0, 63);
  }
  put_half(d, to);
  put_half(m, to + 2);
  unsigned char* packed = to + 4;
  for (int p = 0; p < 4; ++p) {
    packed[p] = static_cast<unsigned char>(scales[p] | (scales[p + 4] >> 4) << 6);
    packed[p + 4] = static_cast<unsigned char>(minima[p] | (minima[p + 4] >> 4) << 6);
    packed[p + 8] = static_cast<unsigned char>((scales[p + 4] & 15) | (minima[p + 4] & 15) << 4);
  }
  for (int p = 0; p < 8; ++p) {
    const float step = d * static_cast<float>(scales[p]), low = m * static_cast<float>(minima[p]);
    for (int i = 0; i < 32; ++i) {
      const int q = step == 0 ? 0 : nearest((x[32 * p + i] + low) / step, 0, 15);
      unsigned char& byte = to[16 + 32 * (p / 2) + i];
      byte = p % 2 == 0 ? static_cast<unsigned char>(q) : static_cast<unsigned char>(byte | q << 4);
    }
  }
}

void block_q6_k(const float* x, unsigned char* to) {
  std::array<float, 16> steps;
  float largest = 0;
  for (int p = 0; p < 16; ++p) {
    int q[16];
    float w[16];
    for (int i = 0; i < 16; ++i) w[i] = x[16 * p + i] * x[16 * p + i];
    steps[p] = symmetric(x + 16 * p, w, 16, -32, 31, q);
    if (std::abs(steps[p]) > std::abs(largest)) largest = steps[p];
  }
  std::memset(to, 0, 210);
  const float d = as_half(largest / -128);
  put_half(d, to + 208);
  for (int p = 0; p < 16; ++p) {
    const int scale = d == 0 ? 0 : nearest(steps[p] / d, -128, 127);
    to[192 + p] = static_cast<unsigned char>(scale);
    const float step = d * static_cast<float>(scale);
    for (int i = 0; i < 16; ++i) {
      const int at = 16 * p + i, half = at / 128, run = at % 128 / 32, inside = at % 32;
      const int q = step == 0 ? 32 : nearest(x[at] / step, -32, 31) + 32;
      unsigned char& low = to[64 * half + inside + 32 * (run % 2)];
      low = static_cast<unsigned char>(low | (q & 15) << (run < 2 ? 0 : 4));
      unsigned char& high = to[128 + 32 * half + inside];
      high = static_cast<unsigned char>(high | (q >> 4) << 2 * run);
    }
  }
}

}  // namespace

bool is_written(BlockType t) {
  return t == BlockType::f32 || t == BlockType::f16 || t == BlockType::bf16 || t == BlockType::q4_0 ||
         t == BlockType::q4_1 || t == BlockType::q8_0 || t == BlockType::q4_k || t == BlockType::q6_k;
}

void quantize(BlockType t, const float* x, i64 n, unsigned char* blocks) {
  const BlockSize size = size_of(t);
  for (i64 i = 0; i < n; ++i, x += size.elements, blocks += size.bytes) switch (t) {
      case BlockType::f32:
        std::memcpy(blocks, x, 4);
        break;
      case BlockType::f16:
        put_half(*x, blocks);
        break;
      case BlockType::bf16: {
        const std::uint16_t bits = bf16_of_float(*x);
        std::memcpy(blocks, &bits, 2);
        break;
      }
      case BlockType::q8_0:
        block_q8(x, blocks);
        break;
      case BlockType::q4_0:
        block_q4_0(x, blocks);
        break;
      case BlockType::q4_1:
        block_q4_1(x, blocks);
        break;
      case BlockType::q4_k:
        block_q4_k(x, blocks);
        break;
      case BlockType::q6_k:
        block_q6_k(x, blocks);
        break;
      default:
        REDCO_CHECK(false, "{} is not written", name_of(t));
    }
}

}  // namespace redco::gguf

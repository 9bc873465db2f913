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

// d for which the sum of w (d q - x)^2 with codes in [low, high] is small: from each of several divisors of
// the largest number, then by least squares for its codes.
float symmetric(const float* x, const float* w, int n, int low, int high) {
  float largest = 0;
  for (int i = 0; i < n; ++i)
    if (std::abs(x[i]) > std::abs(largest)) largest = x[i];
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
  return best;
}

// A group of 32 numbers, eight at a time.
using Eight = float __attribute__((vector_size(32)));
using EightWhole = std::int32_t __attribute__((vector_size(32)));
constexpr int kGroup = 32, kEights = 4;

float sum_of(const Eight& v) {
  float sum = 0;
  for (int i = 0; i < 8; ++i) sum += v[i];
  return sum;
}

struct Affine {
  float d = 0, m = 0;  // x = d q + m
};

// The best d and m for one group, with codes in [0, 15], and m <= 0 if `below`. For given codes, d and m by
// least squares are a closed form. Codes come from lines: several numbers of steps between the least and the
// largest number, and starts near the least one; then from the best d and m, until the error stops falling.
// Steps near 15 fit best; whole ones keep numbers that were rounded to codes before.
class AffineFit {
 public:
  AffineFit(const float* x, const float* w, bool below) : below_(below) {
    low_ = *std::min_element(x, x + kGroup);
    top_ = *std::max_element(x, x + kGroup);
    if (below) low_ = std::min(low_, 0.F);
    std::memcpy(y_, x, sizeof y_);
    std::memcpy(w_, w, sizeof w_);
    Eight sum_w = {}, sum_wy = {};
    for (int i = 0; i < kEights; ++i) {
      y_[i] -= low_;
      sum_w += w_[i];
      sum_wy += w_[i] * y_[i];
    }
    sw_ = static_cast<double>(sum_of(sum_w));
    sy_ = static_cast<double>(sum_of(sum_wy));
  }

  Affine best() {
    if (!(top_ > low_)) return {0, low_};
    const float range = top_ - low_;
    d_ = static_cast<double>(range) / 15;
    for (int steps = 8; steps < 14; ++steps) improve(static_cast<float>(steps) / range, 0);
    for (int fifths = 70; fifths <= 80; ++fifths)
      for (const float start : {-0.25F, 0.F, 0.25F}) improve(static_cast<float>(fifths) / 5 / range, start);
    for (int again = 0; again < 3; ++again)
      if (!improve(static_cast<float>(1 / d_), static_cast<float>(-m_ / d_))) break;
    return {static_cast<float>(d_), static_cast<float>(m_ + static_cast<double>(low_))};
  }

 private:
  // Takes d and m for the codes y * inverse + start, if they are the best so far.
  bool improve(float inverse, float start) {
    Eight vq = {}, vqq = {}, vqy = {};
    for (int i = 0; i < kEights; ++i) {
      const Eight at = y_[i] * inverse + (start + 0.5F);
      EightWhole code = __builtin_convertvector(at < 0 ? Eight{} : at, EightWhole);
      code = code > 15 ? EightWhole{} + 15 : code;
      const Eight q = __builtin_convertvector(code, Eight), wq = w_[i] * q;
      vq += wq;
      vqq += wq * q;
      vqy += wq * y_[i];
    }
    const double sq = static_cast<double>(sum_of(vq)), sqq = static_cast<double>(sum_of(vqq)),
                 sqy = static_cast<double>(sum_of(vqy));
    const double det = sw_ * sqq - sq * sq;
    if (!(det > 0)) return false;
    double d = (sw_ * sqy - sq * sy_) / det, m = (sqq * sy_ - sq * sqy) / det;
    if (below_ && m + static_cast<double>(low_) > 0) {
      m = -static_cast<double>(low_);
      d = (sqy - m * sq) / sqq;
    }
    const double gain = 2 * (d * sqy + m * sy_) - d * d * sqq - 2 * d * m * sq - m * m * sw_;
    if (!(d > 0 && gain > gain_)) return false;
    gain_ = gain;
    d_ = d;
    m_ = m;
    return true;
  }

  const bool below_;
  float low_, top_;
  Eight y_[kEights], w_[kEights];
  double sw_, sy_;                    // sums of w and w y
  double d_ = 0, m_ = 0, gain_ = -1;  // gain: what d and m take from the error, sum of w y^2
};

void put_nibbles(const int* q, int n, unsigned char* to) {
  for (int i = 0; i < n / 2; ++i) to[i] = static_cast<unsigned char>(q[i] | q[i + n / 2] << 4);
}

// How much the error of each number counts: the importance of its column, or, where that is unknown, more for
// large numbers, as in ggml.
void weights_of(const float* x, const float* importance, int n, float* w) {
  if (importance) {
    std::copy_n(importance, n, w);
    return;
  }
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += x[i] * x[i];
  const float mean = std::sqrt(sum / static_cast<float>(n));
  for (int i = 0; i < n; ++i) w[i] = mean + std::abs(x[i]);
}

void block_q8(const float* x, unsigned char* to) {
  float largest = 0;
  for (int i = 0; i < 32; ++i) largest = std::max(largest, std::abs(x[i]));
  const float d = largest / 127;
  put_half(d, to);
  for (int i = 0; i < 32; ++i)
    to[2 + i] = static_cast<unsigned char>(d == 0 ? 0 : static_cast<int>(std::round(x[i] / d)));
}

// The numbers that a run of elements in a block can be: step * code + low.
struct Line {
  float step = 0, low = 0;
};

// Blocks with codes: fit() writes the scales of a block, and finds a line for each run of elements; pack()
// writes the codes.
struct Coded {
  int elements, run, least, most;  // run: elements of a line; codes are in [least, most]
  void (*fit)(const float* x, const float* importance, unsigned char* to, Line* lines);
  void (*pack)(const int* codes, unsigned char* to);

  int code(float x, const Line& l) const {
    return l.step == 0 ? 0 : nearest((x - l.low) / l.step, least, most);
  }
};
constexpr int kMostElements = 256;  // of a block
constexpr int kMostLines = 16;

void fit_q4_0(const float* x, const float* importance, unsigned char* to, Line* lines) {
  float w[kGroup];
  weights_of(x, importance, kGroup, w);
  lines[0].step = as_half(symmetric(x, w, kGroup, -8, 7));
  put_half(lines[0].step, to);
}
void pack_q4_0(const int* codes, unsigned char* to) {
  int q[kGroup];
  for (int i = 0; i < kGroup; ++i) q[i] = codes[i] + 8;
  put_nibbles(q, kGroup, to + 2);
}

void fit_q4_1(const float* x, const float* importance, unsigned char* to, Line* lines) {
  float w[kGroup];
  weights_of(x, importance, kGroup, w);
  const Affine a = AffineFit(x, w, false).best();
  lines[0] = {as_half(a.d), as_half(a.m)};
  put_half(lines[0].step, to);
  put_half(lines[0].low, to + 2);
}
void pack_q4_1(const int* codes, unsigned char* to) { put_nibbles(codes, kGroup, to + 4); }

void fit_q4_k(const float* x, const float* importance, unsigned char* to, Line* lines) {
  std::array<Affine, 8> parts;
  float most_d = 0, most_m = 0;
  for (int p = 0; p < 8; ++p) {
    float w[kGroup];
    weights_of(x + 32 * p, importance ? importance + 32 * p : nullptr, kGroup, w);
    parts[p] = AffineFit(x + 32 * p, w, true).best();
    most_d = std::max(most_d, parts[p].d);
    most_m = std::max(most_m, -parts[p].m);
  }
  const float d = as_half(most_d / 63), m = as_half(most_m / 63);
  std::array<int, 8> scales, minima;
  for (int p = 0; p < 8; ++p) {
    scales[p] = d == 0 ? 0 : nearest(parts[p].d / d, 0, 63);
    minima[p] = m == 0 ? 0 : nearest(-parts[p].m / m, 0, 63);
    lines[p] = {d * static_cast<float>(scales[p]), -m * static_cast<float>(minima[p])};
  }
  put_half(d, to);
  put_half(m, to + 2);
  unsigned char* packed = to + 4;
  for (int p = 0; p < 4; ++p) {
    packed[p] = static_cast<unsigned char>(scales[p] | (scales[p + 4] >> 4) << 6);
    packed[p + 4] = static_cast<unsigned char>(minima[p] | (minima[p + 4] >> 4) << 6);
    packed[p + 8] = static_cast<unsigned char>((scales[p + 4] & 15) | (minima[p + 4] & 15) << 4);
  }
}
void pack_q4_k(const int* codes, unsigned char* to) {
  for (int p = 0; p < 8; p += 2) put_nibbles(codes + 32 * p, 64, to + 16 + 16 * p);
}

void fit_q6_k(const float* x, const float* importance, unsigned char* to, Line* lines) {
  std::array<float, 16> steps;
  float largest = 0;
  for (int p = 0; p < 16; ++p) {
    float w[16];
    for (int i = 0; i < 16; ++i)
      w[i] = x[16 * p + i] * x[16 * p + i] * (importance ? importance[16 * p + i] : 1);
    steps[p] = symmetric(x + 16 * p, w, 16, -32, 31);
    if (std::abs(steps[p]) > std::abs(largest)) largest = steps[p];
  }
  const float d = as_half(largest / -128);
  put_half(d, to + 208);
  for (int p = 0; p < 16; ++p) {
    const int scale = d == 0 ? 0 : nearest(steps[p] / d, -128, 127);
    to[192 + p] = static_cast<unsigned char>(scale);
    lines[p].step = d * static_cast<float>(scale);
  }
}
void pack_q6_k(const int* codes, unsigned char* to) {
  std::memset(to, 0, 192);
  for (int at = 0; at < 256; ++at) {
    const int half = at / 128, run = at % 128 / 32, inside = at % 32, q = codes[at] + 32;
    unsigned char& low = to[64 * half + inside + 32 * (run % 2)];
    low = static_cast<unsigned char>(low | (q & 15) << (run < 2 ? 0 : 4));
    unsigned char& high = to[128 + 32 * half + inside];
    high = static_cast<unsigned char>(high | (q >> 4) << 2 * run);
  }
}

// nullptr: the numbers of the type's blocks do not depend on one another.
const Coded* coded(BlockType t) {
  static constexpr Coded kQ40 = {32, 32, -8, 7, fit_q4_0, pack_q4_0};
  static constexpr Coded kQ41 = {32, 32, 0, 15, fit_q4_1, pack_q4_1};
  static constexpr Coded kQ4K = {256, 32, 0, 15, fit_q4_k, pack_q4_k};
  static constexpr Coded kQ6K = {256, 16, -32, 31, fit_q6_k, pack_q6_k};
  switch (t) {
    case BlockType::q4_0:
      return &kQ40;
    case BlockType::q4_1:
      return &kQ41;
    case BlockType::q4_k:
      return &kQ4K;
    case BlockType::q6_k:
      return &kQ6K;
    default:
      return nullptr;
  }
}

// Adds `error` times the coefficients of column i to x, whose first column is `begin`: a column of a group.
void feed(const ErrorFeedback& f, i64 i, float error, i64 begin, int n, float* x) {
  for (i64 g = i / kGroup; g < (begin + n) / kGroup; ++g) {
    const float* u = f.of(i, g);
    float* to = x + g * kGroup - begin;
    for (int k = 0; k < kGroup; ++k) to[k] += error * u[k];
  }
}
// Adds the errors of the columns before `begin` to n columns from there on, of kRows rows.
constexpr i64 kRows = 4;
void feed_earlier(const ErrorFeedback& f, const float* errors, i64 columns, i64 begin, int n, float* x) {
  for (i64 at = 0; at < n; at += 8) {
    const i64 g = (begin + at) / kGroup, inside = at % kGroup;
    Eight sums[kRows] = {};
    for (i64 i = 0; i < begin; ++i) {
      Eight u;
      std::memcpy(&u, f.of(i, g) + inside, sizeof u);
      for (i64 r = 0; r < kRows; ++r) sums[r] += errors[r * columns + i] * u;
    }
    for (i64 r = 0; r < kRows; ++r)
      for (int k = 0; k < 8; ++k) x[r * n + at + k] += sums[r][k];
  }
}

// Rounds a block's numbers to codes, in order. `feedback`: x has the errors of earlier blocks, and each
// rounding error changes the numbers after it; w: the numbers without errors; errors: out.
void round_block(const Coded& c, const float* importance, const ErrorFeedback* feedback, i64 begin,
                 const float* w, float* x, float* errors, unsigned char* to) {
  Line lines[kMostLines];
  int codes[kMostElements];
  float* fitted = x;
  float moved[kMostElements];
  if (feedback) {  // the best numbers with the errors so far
    std::copy_n(x, c.elements, moved);
    for (int i = 0; i < c.elements; ++i)
      feed(*feedback, begin + i, w[i] - moved[i], begin, c.elements, moved);
    fitted = moved;
  }
  c.fit(fitted, importance, to, lines);
  for (int i = 0; i < c.elements; ++i) {
    const Line& l = lines[i / c.run];
    codes[i] = c.code(x[i], l);
    if (!feedback) continue;
    errors[i] = w[i] - (l.step * static_cast<float>(codes[i]) + l.low);
    feed(*feedback, begin + i, errors[i], begin, c.elements, x);
  }
  c.pack(codes, to);
}

// Up to kRows rows.
void round_rows(const Coded& c, const float* w, i64 rows, i64 columns, const float* importance,
                const ErrorFeedback* feedback, i64 bytes, unsigned char* to) {
  std::vector<float> errors(static_cast<std::size_t>(feedback ? kRows * columns : 0));
  float x[kRows * kMostElements] = {};
  for (i64 begin = 0; begin < columns; begin += c.elements) {
    for (i64 r = 0; r < rows; ++r) std::copy_n(w + r * columns + begin, c.elements, x + r * c.elements);
    if (feedback) feed_earlier(*feedback, errors.data(), columns, begin, c.elements, x);
    for (i64 r = 0; r < rows; ++r)
      round_block(c, importance ? importance + begin : nullptr, feedback, begin, w + r * columns + begin,
                  x + r * c.elements, errors.data() + (feedback ? r * columns + begin : 0),
                  to + (r * columns + begin) / c.elements * bytes);
  }
}

}  // namespace

bool is_written(BlockType t) {
  return t == BlockType::f32 || t == BlockType::f16 || t == BlockType::bf16 || t == BlockType::q4_0 ||
         t == BlockType::q4_1 || t == BlockType::q8_0 || t == BlockType::q4_k || t == BlockType::q6_k;
}

void quantize(BlockType t, const float* x, i64 n, unsigned char* blocks) {
  quantize_rows(t, x, n, size_of(t).elements, nullptr, nullptr, blocks);
}

void quantize_rows(BlockType t, const float* x, i64 rows, i64 columns, const float* importance,
                   const ErrorFeedback* feedback, unsigned char* blocks) {
  const BlockSize size = size_of(t);
  if (const Coded* c = coded(t)) {
    for (i64 r = 0; r < rows; r += kRows)
      round_rows(*c, x + r * columns, std::min(kRows, rows - r), columns, importance, feedback, size.bytes,
                 blocks + r * columns / size.elements * size.bytes);
    return;
  }
  for (i64 i = 0; i < rows * columns; i += size.elements, x += size.elements, blocks += size.bytes)
    switch (t) {
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
      default:
        REDCO_CHECK(false, "{} is not written", name_of(t));
    }
}

}  // namespace redco::gguf

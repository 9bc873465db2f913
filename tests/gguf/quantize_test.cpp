// Quantized blocks: the errors after dequantize().
#include "gguf/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace redco::gguf {
namespace {

std::vector<float> some_weights(std::size_t n) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, 0.02F);
  std::vector<float> x(n);
  for (float& v : x) v = normal(random);
  for (std::size_t i = 0; i < 256; ++i) x[i] = 0;                         // a block of zeros
  for (std::size_t i = 256; i < 512; ++i) x[i] = std::abs(x[i]) + 0.01F;  // of one sign
  for (std::size_t i = 512; i < 768; ++i) x[i] = -std::abs(x[i]) - 0.01F;
  x[800] = 1;  // an outlier
  return x;
}

// The root of the mean squared error, over that of the numbers.
double error_of(BlockType t, const std::vector<float>& x) {
  const BlockSize size = size_of(t);
  const i64 n = static_cast<i64>(x.size()) / size.elements;
  std::vector<unsigned char> blocks(static_cast<std::size_t>(n * size.bytes));
  std::vector<float> y(x.size());
  quantize(t, x.data(), n, blocks.data());
  dequantize(t, blocks.data(), n, y.data());
  double error = 0, whole = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_TRUE(std::isfinite(y[i]));
    if (x[i] == 0 && i < 256) EXPECT_EQ(y[i], 0) << name_of(t);
    error += std::pow(static_cast<double>(x[i]) - static_cast<double>(y[i]), 2);
    whole += std::pow(static_cast<double>(x[i]), 2);
  }
  return std::sqrt(error / whole);
}

TEST(Quantize, ErrorsAreThoseOfTheirBits) {
  const std::vector<float> x = some_weights(256 * 64);
  EXPECT_EQ(error_of(BlockType::f32, x), 0);
  EXPECT_LT(error_of(BlockType::f16, x), 0x1p-11);
  EXPECT_LT(error_of(BlockType::bf16, x), 0x1p-8);
  // A normal block of 32 has numbers up to 2.2 sigma: a step of 8 bits is 2.2 / 127 sigma, its error that
  // over the root of 12; of 4 bits 4.4 / 15 sigma.
  EXPECT_LT(error_of(BlockType::q8_0, x), 0.008);
  EXPECT_LT(error_of(BlockType::q6_k, x), 0.025);
  EXPECT_LT(error_of(BlockType::q4_1, x), 0.09);
  EXPECT_LT(error_of(BlockType::q4_k, x), 0.09);
  EXPECT_LT(error_of(BlockType::q4_0, x), 0.1);
}

// Numbers that the codes can give come back unchanged.
TEST(Quantize, KeepsItsOwnNumbers) {
  for (const BlockType t :
       {BlockType::q8_0, BlockType::q4_0, BlockType::q4_1, BlockType::q6_k, BlockType::q4_k}) {
    const std::vector<float> x = some_weights(1024);
    const BlockSize size = size_of(t);
    const i64 n = static_cast<i64>(x.size()) / size.elements;
    std::vector<unsigned char> blocks(static_cast<std::size_t>(n * size.bytes));
    std::vector<float> y(x.size());
    quantize(t, x.data(), n, blocks.data());
    dequantize(t, blocks.data(), n, y.data());
    EXPECT_LT(error_of(t, y), t == BlockType::q4_k || t == BlockType::q6_k ? 0.02 : 0.002) << name_of(t);
  }
}

// The errors of a column with a large importance shrink, at the cost of the others.
TEST(Quantize, ImportantColumnsAreMoreExact) {
  constexpr i64 kColumns = 256;
  std::vector<float> x = some_weights(64 * kColumns), importance(kColumns, 1);
  x.erase(x.begin(), x.begin() + 4 * kColumns);
  for (std::size_t c = 0; c < kColumns; c += 8) importance[c] = 100;
  for (const BlockType t : {BlockType::q4_0, BlockType::q4_1, BlockType::q4_k, BlockType::q6_k}) {
    const BlockSize size = size_of(t);
    const i64 n = std::ssize(x) / size.elements;
    std::vector<unsigned char> blocks(static_cast<std::size_t>(n * size.bytes));
    std::vector<float> plain(x.size()), weighted(x.size());
    quantize(t, x.data(), n, blocks.data());
    dequantize(t, blocks.data(), n, plain.data());
    quantize_rows(t, x.data(), std::ssize(x) / kColumns, kColumns, importance.data(), nullptr, blocks.data());
    dequantize(t, blocks.data(), n, weighted.data());
    double before = 0, after = 0;
    for (std::size_t i = 0; i < x.size(); i += 8) {
      before += std::pow(static_cast<double>(x[i] - plain[i]), 2);
      after += std::pow(static_cast<double>(x[i] - weighted[i]), 2);
    }
    EXPECT_LT(after, 0.7 * before) << name_of(t);
  }
}

// Inputs of several common causes, and products of them.
struct Inputs {
  static constexpr i64 kColumns = 256, kRows = 1024;
  std::vector<double> x = std::vector<double>(kRows * kColumns);
  std::vector<float> moments = std::vector<float>(kColumns * kColumns);

  Inputs() {
    constexpr i64 kCauses = 64;
    std::mt19937 random(7);
    std::normal_distribution<double> normal;
    std::vector<double> mix(kCauses * kColumns);
    for (double& m : mix) m = normal(random);
    for (i64 r = 0; r < kRows; ++r) {
      std::vector<double> cause(kCauses);
      for (double& c : cause) c = normal(random);
      for (i64 k = 0; k < kColumns; ++k) {
        double& to = x[r * kColumns + k] = normal(random);
        for (i64 c = 0; c < kCauses; ++c) to += 0.5 * cause[c] * mix[c * kColumns + k];
      }
    }
    for (i64 i = 0; i < kColumns; ++i)
      for (i64 k = 0; k < kColumns; ++k) {
        double sum = 0;
        for (i64 r = 0; r < kRows; ++r) sum += x[r * kColumns + i] * x[r * kColumns + k];
        moments[i * kColumns + k] = static_cast<float>(sum / kRows);
      }
  }
  std::vector<float> squares() const {
    std::vector<float> out;
    for (i64 k = 0; k < kColumns; ++k) out.push_back(moments[k * (kColumns + 1)]);
    return out;
  }
  // ||X (W - Q)^T||^2 by rows of X.
  double output_error(const std::vector<float>& w, const std::vector<float>& q) const {
    double all = 0;
    for (i64 o = 0; o < std::ssize(w); o += kColumns)
      for (i64 r = 0; r < kRows; ++r) {
        double sum = 0;
        for (i64 k = 0; k < kColumns; ++k)
          sum += x[r * kColumns + k] * static_cast<double>(w[o + k] - q[o + k]);
        all += sum * sum;
      }
    return all;
  }
};

std::vector<float> rounded(BlockType t, const std::vector<float>& x, const std::vector<float>& importance,
                           const ErrorFeedback* feedback) {
  const BlockSize size = size_of(t);
  const i64 n = std::ssize(x) / size.elements, columns = std::ssize(importance);
  std::vector<unsigned char> blocks(static_cast<std::size_t>(n * size.bytes));
  quantize_rows(t, x.data(), std::ssize(x) / columns, columns, importance.data(), feedback, blocks.data());
  std::vector<float> y(x.size());
  dequantize(t, blocks.data(), n, y.data());
  return y;
}

// Rounding errors that later columns cancel change the outputs less.
TEST(Quantize, FeedbackShrinksTheErrorOfTheOutputs) {
  const Inputs in;
  const ErrorFeedback feedback(in.moments, Inputs::kColumns);
  std::vector<float> w = some_weights(40 * Inputs::kColumns);
  w.erase(w.begin(), w.begin() + 6 * Inputs::kColumns);  // 34 rows: not whole tiles
  for (const BlockType t : {BlockType::q4_0, BlockType::q4_1, BlockType::q4_k, BlockType::q6_k}) {
    const double before = in.output_error(w, rounded(t, w, in.squares(), nullptr));
    const double after = in.output_error(w, rounded(t, w, in.squares(), &feedback));
    EXPECT_LT(after, 0.5 * before) << name_of(t);
  }
}

// Inputs without correlation: the weighted rounding.
TEST(Quantize, DiagonalFeedbackChangesNothing) {
  std::vector<float> squares = Inputs().squares(), diagonal(Inputs::kColumns * Inputs::kColumns);
  for (i64 k = 0; k < Inputs::kColumns; ++k) diagonal[k * (Inputs::kColumns + 1)] = squares[k];
  const ErrorFeedback feedback(diagonal, Inputs::kColumns);
  const std::vector<float> w = some_weights(16 * Inputs::kColumns);
  for (const BlockType t : {BlockType::q4_0, BlockType::q4_1, BlockType::q4_k, BlockType::q6_k})
    EXPECT_EQ(rounded(t, w, squares, &feedback), rounded(t, w, squares, nullptr)) << name_of(t);
}

// The coefficients are those of GPTQ: rows of the upper Cholesky factor of the inverse, here in closed form.
TEST(Quantize, FeedbackOfTwoColumns) {
  const float damped = 1 + 0.01F;  // the mean of the diagonal is 1
  const ErrorFeedback feedback({1, 0.5F, 0.5F, 1}, 2);
  EXPECT_FLOAT_EQ(feedback.of(0, 0)[1], 0.5F / damped);
  EXPECT_EQ(feedback.of(1, 0)[1], 0);
}

// MXFP4: a power of two, then codes of a sign, two bits of exponent and one of mantissa.
TEST(Quantize, ReadsMxfp4) {
  unsigned char block[17] = {128};
  for (int i = 0; i < 16; ++i) block[1 + i] = static_cast<unsigned char>(i | (15 - i) << 4);
  float y[32];
  dequantize(BlockType::mxfp4, block, 1, y);
  const std::vector<float> half = {0, 1, 2, 3, 4, 6, 8, 12};
  for (int i = 0; i < 16; ++i) {
    const float want = (i < 8 ? 1.F : -1.F) * half[static_cast<std::size_t>(i % 8)];
    EXPECT_EQ(y[i], want);
    EXPECT_EQ(y[31 - i], want);
  }
}

}  // namespace
}  // namespace redco::gguf

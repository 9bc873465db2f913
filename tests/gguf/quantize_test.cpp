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
    quantize_rows(t, x.data(), std::ssize(x) / kColumns, kColumns, importance.data(), blocks.data());
    dequantize(t, blocks.data(), n, weighted.data());
    double before = 0, after = 0;
    for (std::size_t i = 0; i < x.size(); i += 8) {
      before += std::pow(static_cast<double>(x[i] - plain[i]), 2);
      after += std::pow(static_cast<double>(x[i] - weighted[i]), 2);
    }
    EXPECT_LT(after, 0.7 * before) << name_of(t);
  }
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

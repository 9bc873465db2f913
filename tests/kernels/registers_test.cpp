// The instructions behind src/kernels/cpu/isa, each compared with a plain loop: of x86-64-v2, or of arm64.
// (The tests of the kernels run all instruction sets of the CPU, but say less about which instruction is
// wrong.)
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#define REDCO_ISA registers_test
#include "kernels/cpu/isa/philox.h"

namespace redco::kernels::registers_test {
namespace {

constexpr int W = kBytes / 4;

template <class V, class T, std::size_t N>
std::array<T, N> lanes_of(const V& v) {
  static_assert(sizeof(V) == N * sizeof(T));
  std::array<T, N> out;
  std::memcpy(out.data(), &v, sizeof v);
  return out;
}
template <class V, class T>
V vector_of(const std::vector<T>& x) {
  V v;
  std::memcpy(&v, x.data(), sizeof v);
  return v;
}

TEST(Registers, Conversions) {
  for (int first = -128; first + 2 * W <= 128; ++first) {
    std::vector<std::int8_t> bytes;
    for (int i = 0; i < 2 * W; ++i) bytes.push_back(static_cast<std::int8_t>(first + i));
    const auto floats = lanes_of<Floats, float, W>(floats_of(bytes.data()));
    const auto words = lanes_of<Words, std::int16_t, 2 * W>(words_of(bytes.data()));
    for (int i = 0; i < W; ++i) EXPECT_EQ(floats[i], first + i);
    for (int i = 0; i < 2 * W; ++i) EXPECT_EQ(words[i], first + i);
  }
  for (int byte = 0; byte < 256; ++byte) {
    std::array<std::uint8_t, W> pairs;
    for (int i = 0; i < W; ++i) pairs[i] = static_cast<std::uint8_t>(byte + 17 * i);
    const auto low = lanes_of<Floats, float, W>(floats_of_nibbles(pairs.data(), false));
    const auto high = lanes_of<Floats, float, W>(floats_of_nibbles(pairs.data(), true));
    for (int i = 0; i < W; ++i) EXPECT_EQ(low[i], pairs[i] & 15);
    for (int i = 0; i < W; ++i) EXPECT_EQ(high[i], pairs[i] >> 4);
  }
  for (u32 bits = 0; bits < 0x10000; bits += 7) {
    std::array<bf16, W> x;
    for (int i = 0; i < W; ++i) x[i].bits = static_cast<std::uint16_t>(bits + static_cast<u32>(i));
    const auto y = lanes_of<Floats, u32, W>(floats_of(x.data()));
    for (int i = 0; i < W; ++i) EXPECT_EQ(y[i], static_cast<u32>(x[i].bits) << 16);
  }
}

TEST(Registers, EveryFourthReadsTheRowsOfABlock) {
  std::vector<std::uint8_t> x(200);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint8_t>(i);
  const auto y = lanes_of<Block, std::uint8_t, kBytes>(every_fourth(x.data() + 1, 37));
  for (int i = 0; i < kBytes; ++i) EXPECT_EQ(y[i], 1 + i / 16 * 37 + i % 16);
}

TEST(Registers, ProductsOfNeighbours) {
  u32 state = 1;
  const auto draw = [&] { return static_cast<std::int16_t>((state = state * 1664525u + 1013904223u) >> 16); };
  for (int t = 0; t < 200; ++t) {
    std::vector<std::int16_t> a, b;
    for (int i = 0; i < 2 * W; ++i) a.push_back(draw()), b.push_back(draw());
    if (t == 0) a.assign(2 * W, 32639), b.assign(2 * W, -127);
    const auto sums = lanes_of<Ints, i32, W>(add_neighbours(vector_of<Words>(a), vector_of<Words>(b)));
    for (int i = 0; i < W; ++i) EXPECT_EQ(sums[i], a[2 * i] * b[2 * i] + a[2 * i + 1] * b[2 * i + 1]);

    std::vector<std::uint8_t> nibbles;
    std::vector<std::int8_t> bytes;
    for (int i = 0; i < kBytes; ++i)
      nibbles.push_back(static_cast<std::uint8_t>(draw() & 15)),
          bytes.push_back(static_cast<std::int8_t>(draw()));
    if (t == 0) nibbles.assign(kBytes, 15), bytes.assign(kBytes, -128);
    const auto words = lanes_of<Words, std::int16_t, 2 * W>(
        add_byte_neighbours(vector_of<Block>(nibbles), vector_of<Block>(bytes)));
    for (int i = 0; i < 2 * W; ++i)
      EXPECT_EQ(words[i], nibbles[2 * i] * bytes[2 * i] + nibbles[2 * i + 1] * bytes[2 * i + 1]);
  }
}

// fp16_value() in integer arithmetic is what convert.cpp uses; NaN keeps no promise about its bits.
TEST(Registers, Fp16) {
  const auto same = [](float x, float y) { return std::isnan(x) ? std::isnan(y) : to_bits(x) == to_bits(y); };
  for (u32 bits = 0; bits < 0x10000; ++bits) {
    const auto word = static_cast<std::uint16_t>(bits);
    ASSERT_TRUE(same(scale_of(word), fp16_value(bits))) << bits;
  }
  constexpr i64 kStride = 20;
  std::vector<std::byte> memory(W * kStride);
  for (u32 bits = 0; bits < 0x7c00; bits += 31) {
    for (int i = 0; i < W; ++i) {
      const std::array<std::uint16_t, 2> pair{static_cast<std::uint16_t>(bits + static_cast<u32>(i)),
                                              static_cast<std::uint16_t>(0x8000u + bits)};
      std::memcpy(memory.data() + i * kStride, pair.data(), sizeof pair);
    }
    const ScalePairs pairs = scale_pairs(memory.data(), kStride);
    float times[W], first, second;
    scales_times(memory.data(), kStride, 3.0f, times);
    scale_pair(memory.data() + kStride, first, second);
    EXPECT_EQ(first, fp16_value(bits + 1));
    EXPECT_EQ(second, fp16_value(0x8000u + bits));
    for (int i = 0; i < W; ++i) {
      EXPECT_EQ(pairs.first[i], fp16_value(bits + static_cast<u32>(i)));
      EXPECT_EQ(pairs.second[i], fp16_value(0x8000u + bits));
      EXPECT_EQ(times[i], 3.0f * fp16_value(bits + static_cast<u32>(i)));
    }
  }
}

// One counter of Salmon et al. 2011, in plain integers.
std::array<u32, 2> philox(u64 key, std::array<u32, 4> c) {
  u32 k0 = static_cast<u32>(key), k1 = static_cast<u32>(key >> 32);
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
    const u64 p0 = u64{0xD2511F53u} * c[0], p1 = u64{0xCD9E8D57u} * c[2];
    c = {static_cast<u32>(p1 >> 32) ^ c[1] ^ k0, static_cast<u32>(p1), static_cast<u32>(p0 >> 32) ^ c[3] ^ k1,
         static_cast<u32>(p0)};
  }
  return {c[0], c[1]};
}
TEST(Registers, Philox) {
  constexpr u64 kKey = 0x123456789abcdef0u;
  constexpr u32 kLast = 0xfffffff0u;  // the counter wraps around
  std::vector<u32> first(40), second(40);
  philox_fill<true>(kKey, 7, 8, 9, kLast, first.data(), second.data(), 37);
  for (u32 i = 0; i < 37; ++i)
    EXPECT_EQ((std::array<u32, 2>{first[i], second[i]}), philox(kKey, {7, 8, 9, kLast + i})) << i;
}

}  // namespace
}  // namespace redco::kernels::registers_test

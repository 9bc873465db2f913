// Products of bf16 by AVX512-BF16 and by AMX, on any CPU: the same source files with emulated intrinsics.
// (On a CPU that has the instructions, gemm_test.cpp tests them.)
#include <fmt/format.h>

#include "kernels/emulated_intrinsics.h"

// The library has the classes too, with the CPU's intrinsics.
#define DotTiles EmulatedDotTiles
#define AmxTiles EmulatedAmxTiles
#include "kernels/cpu/amx/tiles.cpp"
#include "kernels/cpu/avx512_bf16/tiles.cpp"
#include "kernels/kernels_testing.h"

namespace redco::kernels {
namespace {

float value_of(float x) { return wide(narrow(x)); }
float value_of(bf16 x) { return wide(x); }

template <class T>
std::vector<T> random_operand(i64 n, unsigned seed) {
  const auto x = random_array<float>(n, seed);
  if constexpr (std::is_same_v<T, float>) {
    return x;
  } else {
    std::vector<T> out;
    for (const float v : x) out.push_back(narrow(v));
    return out;
  }
}

struct Operands {
  i64 m, n, k;
  bool trans_a, trans_b;
  bool in_two_blocks;  // of k: the second adds to the first's sums
  bool bias, to_bf16;
};

// Rows of operands and of y are 3 elements apart. Buffers end with the last element, for the address
// sanitizer.
template <class Tiles, class T>
void check(const Operands& x) {
  SCOPED_TRACE(fmt::format("{} x {} x {}, trans {} {}, two blocks {}, bias {}, to bf16 {}", x.m, x.n, x.k,
                           x.trans_a, x.trans_b, x.in_two_blocks, x.bias, x.to_bf16));
  constexpr i64 kPad = 3;
  const auto size = [](i64 rows, i64 columns) { return rows * (columns + kPad) - kPad; };
  const i64 lda = (x.trans_a ? x.m : x.k) + kPad, ldb = (x.trans_b ? x.k : x.n) + kPad, ldy = x.n + kPad;
  const auto a = random_operand<T>(x.trans_a ? size(x.k, x.m) : size(x.m, x.k), 1);
  const auto b = random_operand<T>(x.trans_b ? size(x.n, x.k) : size(x.k, x.n), 2);
  const auto bias = random_array<float>(x.n, 3);
  constexpr float kUnwritten = 1234;  // exact in bf16
  std::vector<float> sums(static_cast<std::size_t>(size(x.m, x.n)), kUnwritten);
  std::vector<float> y(sums);
  std::vector<bf16> y16(sums.size(), narrow(kUnwritten));

  const i64 first = x.in_two_blocks ? ceil_div(x.k, i64{4}) * 2 : x.k;
  for (i64 at = 0, deep = first; at < x.k; at += deep, deep = x.k - first) {
    const bool last = at + deep == x.k;
    std::vector<u32> left(static_cast<std::size_t>(Tiles::left_size(x.m, deep))),
        right(static_cast<std::size_t>(Tiles::right_size(x.n, deep)));
    const LeftPairs packed =
        Tiles::pack_left(a.data() + (x.trans_a ? at * lda : at), lda, x.trans_a, x.m, deep, left.data());
    Tiles::pack_right(b.data() + (x.trans_b ? at : at * ldb), ldb, x.trans_b, x.n, deep, right.data());
    TileOutput out{.before = at > 0 ? sums.data() : nullptr, .ld_before = ldy, .y = sums.data(), .ld = ldy};
    if (last) {
      out.bias = x.bias ? bias.data() : nullptr;
      out.bf16 = x.to_bf16;
      out.y = x.to_bf16 ? static_cast<void*>(y16.data()) : y.data();
    }
    Tiles::multiply(x.m, x.n, deep, packed, right.data(), out);
  }

  if (x.to_bf16)
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = value_of(y16[i]);
  std::vector<double> want(y.size(), kUnwritten);
  for (i64 i = 0; i < x.m; ++i)
    for (i64 j = 0; j < x.n; ++j) {
      double s = x.bias ? bias[static_cast<std::size_t>(j)] : 0;
      for (i64 p = 0; p < x.k; ++p)
        s += static_cast<double>(
                 value_of(a[static_cast<std::size_t>(x.trans_a ? p * lda + i : i * lda + p)])) *
             value_of(b[static_cast<std::size_t>(x.trans_b ? j * ldb + p : p * ldb + j)]);
      want[static_cast<std::size_t>(i * ldy + j)] = s;
    }
  // k fp32 additions of numbers of about sqrt(k); half a unit of bf16.
  const double eps = std::numeric_limits<float>::epsilon();
  expect_close(y, want, x.to_bf16 ? 1.0 / 256 : 4 * eps * static_cast<double>(x.k + 4));
}

template <class Tiles, class T>
void check_all() {
  for (const i64 m : {1, 8, 17, 48})
    for (const i64 n : {1, 16, 31, 50})
      for (const i64 k : {1, 32, 67})
        for (unsigned flags = 0; flags < 8; ++flags) {
          const bool trans_a = flags & 1, trans_b = flags & 2, more = flags & 4;
          check<Tiles, T>({m, n, k, trans_a, trans_b, more && k > 2, more, false});
          if (::testing::Test::HasFailure()) return;
        }
  for (const i64 m : {5, 32})
    for (const i64 n : {33, 64}) check<Tiles, T>({m, n, 40, false, true, true, n == 33, true});
}

template <class Tiles>
void check_stored_operand(i64 m, i64 k) {
  ASSERT_TRUE(Tiles::reads_stored(m, k));
  constexpr i64 n = 37, kGap = 2;
  const auto a = random_operand<bf16>(m * (k + kGap), 1);
  const auto b = random_operand<bf16>(k * n, 2);
  std::vector<u32> left(static_cast<std::size_t>(Tiles::left_size(m, k))),
      right(static_cast<std::size_t>(Tiles::right_size(n, k)));
  Tiles::pack_right(b.data(), n, false, n, k, right.data());
  const auto product = [&](const LeftPairs& x) {
    std::vector<float> y(static_cast<std::size_t>(m * n));
    Tiles::multiply(m, n, k, x, right.data(), {.y = y.data(), .ld = n});
    return y;
  };
  std::vector<u32> stored(a.size() / 2);
  std::memcpy(stored.data(), a.data(), a.size() * sizeof(bf16));
  EXPECT_TRUE(same_bits(product({stored.data(), (k + kGap) / 2, 1}),
                        product(Tiles::pack_left(a.data(), k + kGap, false, m, k, left.data()))));
}

TEST(EmulatedTiles, Avx512Bf16Multiplies) {
  check_all<EmulatedDotTiles, float>();
  check_all<EmulatedDotTiles, bf16>();
}

TEST(EmulatedTiles, AmxMultiplies) {
  check_all<EmulatedAmxTiles, float>();
  check_all<EmulatedAmxTiles, bf16>();
}

TEST(EmulatedTiles, AStoredLeftOperandGivesTheSameBits) {
  check_stored_operand<EmulatedDotTiles>(9, 38);
  check_stored_operand<EmulatedAmxTiles>(48, 64);
}

}  // namespace
}  // namespace redco::kernels

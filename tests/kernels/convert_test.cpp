#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cpu/elementwise.h"
#include "kernels/kernels_testing.h"

namespace redco::kernels {
namespace {

u32 bits(float x) { return std::bit_cast<u32>(x); }
float value(u32 b) { return std::bit_cast<float>(b); }

// Every 16-bit pattern is unchanged after conversion to fp32 and back (NaN stays NaN).
TEST(Convert, EveryBf16IsUnchangedByARoundTrip) {
  on_every_isa([] {
    std::vector<bf16> all(65536), back(65536);
    for (u32 i = 0; i < 65536; ++i) all[i].bits = static_cast<std::uint16_t>(i);
    std::vector<float> x(65536);
    from_bf16(all.data(), x.data(), 65536);
    to_bf16(x.data(), back.data(), 65536);
    for (u32 i = 0; i < 65536; ++i) {
      ASSERT_EQ(bits(x[i]), i << 16);
      const bool nan = (i & 0x7fff) > 0x7f80;
      ASSERT_EQ(back[i].bits, nan ? i | 0x40 : i);
    }
  });
}

TEST(Convert, EveryFp16IsUnchangedByARoundTrip) {
  on_every_isa([] {
    std::vector<std::uint16_t> all(65536), back(65536);
    for (u32 i = 0; i < 65536; ++i) all[i] = static_cast<std::uint16_t>(i);
    std::vector<float> x(65536);
    from_fp16(all.data(), x.data(), 65536);
    to_fp16(x.data(), back.data(), 65536);
    for (u32 i = 0; i < 65536; ++i) {
      const u32 e = i >> 10 & 31, m = i & 1023;
      const double want = (i & 0x8000 ? -1 : 1) *
                          (e == 0 ? std::ldexp(m, -24) : std::ldexp(1024.0 + m, static_cast<int>(e) - 25));
      if (e < 31) {
        ASSERT_EQ(x[i], want) << i;
        ASSERT_EQ(std::signbit(x[i]), i >= 0x8000);
        ASSERT_EQ(back[i], i);
      } else if (m == 0) {
        ASSERT_EQ(x[i], i & 0x8000 ? -kInf : kInf);
        ASSERT_EQ(back[i], i);
      } else {
        ASSERT_TRUE(std::isnan(x[i]));
        ASSERT_GT(back[i] & 0x7fff, 0x7c00);
      }
    }
  });
}

// x as bf16 and back.
std::vector<float> rounded(const std::vector<float>& x) {
  std::vector<bf16> stored(x.size());
  std::vector<float> y(x.size());
  to_bf16(x.data(), stored.data(), static_cast<i64>(x.size()));
  from_bf16(stored.data(), y.data(), static_cast<i64>(x.size()));
  return y;
}

// The nearer of two neighbours is chosen; on a tie the even one.
TEST(Convert, RoundsToNearestEven) {
  on_every_isa([] {
    std::vector<float> x, want;
    for (u32 i = 0; i < 0x7f80; i += 3) {  // up to the largest finite bf16, whose upper neighbour is inf
      const u32 low = i << 16;
      for (u32 rest : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
        x.push_back(value(low | rest));
        const bool up = rest > 0x8000 || (rest == 0x8000 && (i & 1));
        want.push_back(value((i + up) << 16));
      }
    }
    EXPECT_TRUE(same_bits(rounded(x), want));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = -x[i], want[i] = -want[i];
    EXPECT_TRUE(same_bits(rounded(x), want));

    x.clear();
    std::vector<std::uint16_t> half;
    // Halves i and i + 1, and the values between them; 0x7c00 is inf, as 65536.
    for (u32 i = 0; i < 0x7c00; ++i) {
      const auto half_value = [](u32 h) {
        const u32 e = h >> 10, m = h & 1023;
        return e ? std::ldexp(1024.0 + m, static_cast<int>(e) - 25) : std::ldexp(m, -24);
      };
      const double a = half_value(i), b = half_value(i + 1), middle = (a + b) / 2;
      x.push_back(static_cast<float>(middle));
      half.push_back(static_cast<std::uint16_t>(i + (i & 1)));
      x.push_back(std::nextafter(static_cast<float>(middle), 0.0f));
      half.push_back(static_cast<std::uint16_t>(i));
      x.push_back(std::nextafter(static_cast<float>(middle), kInf));
      half.push_back(static_cast<std::uint16_t>(i + 1));
    }
    x.push_back(1e30f), half.push_back(0x7c00);
    x.push_back(kInf), half.push_back(0x7c00);
    x.push_back(-1e-30f), half.push_back(0x8000);
    std::vector<std::uint16_t> got(x.size());
    to_fp16(x.data(), got.data(), static_cast<i64>(x.size()));
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(got[i], half[i]) << x[i];
  });
}

TEST(Convert, NanStaysNan) {
  for (u32 pattern : {0x7f800001u, 0x7fffffffu, 0xff800001u, 0xffffffffu, 0x7fc00000u}) {
    const float x = value(pattern);
    const float y = rounded({x})[0];
    EXPECT_TRUE(std::isnan(y));
    EXPECT_EQ(std::signbit(y), pattern >> 31 != 0);
    std::uint16_t h;
    to_fp16(&x, &h, 1);
    EXPECT_GT(h & 0x7fff, 0x7c00);
  }
}

}  // namespace
}  // namespace redco::kernels

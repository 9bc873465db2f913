#include "kernels/philox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cpu/isa/ranges.h"
#include "kernels/cpu/nn.h"
#include "kernels/kernels_testing.h"

namespace redco::kernels {
namespace {

u64 key_of(u32 low, u32 high) { return static_cast<u64>(high) << 32 | low; }

// The known answers of Random123's kat_vectors, philox4x32 10.
TEST(Philox, MatchesTheTestVectors) {
  on_every_isa([] {
    EXPECT_EQ(philox_word(0, 0, 0, 0, 0), 0x6627e8d5u);
    EXPECT_EQ(philox_word(~u64{0}, -1, -1, -1, -1), 0x408f276du);
    EXPECT_EQ(philox_word(key_of(0xa4093822, 0x299f31d0), 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344),
              0xd16cfe09u);
    const auto second = [](u64 key, u32 c0, u32 c1, u32 c2, u32 c3) {
      std::vector<u32> a(20), b(20);  // in a full vector and alone
      REDCO_ISA_CALL(philox_words(key, c0, c1, c2, c3, a.data(), b.data(), 20));
      return b[0];
    };
    EXPECT_EQ(second(0, 0, 0, 0, 0), 0xe169c58du);
    EXPECT_EQ(second(~u64{0}, ~0u, ~0u, ~0u, ~0u), 0x41c83b0eu);
    EXPECT_EQ(second(key_of(0xa4093822, 0x299f31d0), 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344),
              0x94fdccebu);
  });
}

// The numbers of a block equal those of the whole tensor at its position, for any size and instruction set.
TEST(Philox, ABlockEqualsItsPartOfTheWholeTensor) {
  const u64 key = 0x123456789abcdefull;
  const Block4 whole{{0, 0, 0, 0}, {3, 4, 5, 70}}, part{{1, 1, 2, 13}, {2, 3, 3, 40}};
  std::vector<std::vector<float>> first;
  on_every_isa([&] {
    std::vector<float> u(4200), n(4200), pu(720), pn(720), x(720, 1.0f), d(720);
    philox_uniform(key, whole, u.data());
    philox_normal(key, whole, n.data());
    philox_uniform(key, part, pu.data());
    philox_normal(key, part, pn.data());
    dropout(x.data(), d.data(), 0.3, key, part);
    for (i64 i = 0; i < 720; ++i) {
      const i64 c3 = i % 40 + 13, c2 = i / 40 % 3 + 2, c1 = i / 120 % 3 + 1, c0 = i / 360 + 1;
      const i64 at = ((c0 * 4 + c1) * 5 + c2) * 70 + c3;
      ASSERT_EQ(pu[i], u[at]);
      ASSERT_EQ(pn[i], n[at]);
      ASSERT_EQ(pu[i], static_cast<float>(philox_word(key, c0, c1, c2, c3) >> 8) * 0x1p-24f);
      ASSERT_EQ(d[i], static_cast<double>(pu[i]) >= 0.3 ? static_cast<float>(1 / 0.7) : 0);
    }
    if (first.empty()) first = {u, n};
    EXPECT_TRUE(same_bits(first[0], u));
    EXPECT_TRUE(same_bits(first[1], n));
  });
}

TEST(Philox, MomentsMatchTheDistributions) {
  const i64 n = 1 << 18;
  const Block4 b{{0, 0, 0, 0}, {1, 1, 1 << 9, 1 << 9}};
  std::vector<float> u(n), z(n);
  philox_uniform(7, b, u.data());
  philox_normal(8, b, z.data());
  double mu = 0, mz = 0, vz = 0, cross = 0;
  for (i64 i = 0; i < n; ++i) {
    ASSERT_GE(u[i], 0.0f);
    ASSERT_LT(u[i], 1.0f);
    mu += u[i] / n, mz += z[i] / n, vz += static_cast<double>(z[i]) * z[i] / n;
    if (i) cross += static_cast<double>(z[i]) * z[i - 1] / n;
  }
  // Standard errors: 0.29 / 512, 1 / 512, sqrt 2 / 512, 1 / 512; five of each.
  EXPECT_NEAR(mu, 0.5, 5 * 0.29 / 512);
  EXPECT_NEAR(mz, 0, 5.0 / 512);
  EXPECT_NEAR(vz, 1, 5 * 1.42 / 512);
  EXPECT_NEAR(cross, 0, 5.0 / 512);
}

TEST(Dropout, KeepsItsRateAndItsMean) {
  const i64 n = 1 << 18;
  const std::vector<float> x(n, 1.0f);
  std::vector<float> y(n);
  for (double rate : {0.0, 0.1, 0.5, 0.999}) {
    dropout(x.data(), y.data(), rate, 3, Block4{{0, 0, 0, 0}, {1, 2, 1, n / 2}});
    i64 kept = 0;
    for (float v : y) kept += v != 0;
    // Binomial: five standard deviations.
    EXPECT_NEAR(static_cast<double>(kept) / n, 1 - rate, 5 * std::sqrt(rate * (1 - rate) / n)) << rate;
    if (rate == 0) {
      EXPECT_TRUE(same_bits(x, y));
    }
  }
  dropout<float>(nullptr, nullptr, 0.5, 3, Block4{{0, 0, 0, 0}, {1, 0, 3, 2}});
}

}  // namespace
}  // namespace redco::kernels

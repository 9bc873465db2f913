#include "kernels/cpu/groups.h"

#include <gtest/gtest.h>

#include "kernels/cpu/elementwise.h"
#include "kernels/kernels_testing.h"

namespace redco::kernels {
namespace {

template <class G>
std::vector<G> grouped(const std::vector<float>& x, i64 rows, i64 n) {
  std::vector<G> out(static_cast<std::size_t>(rows * groups_in(n)));
  to_groups(x.data(), out.data(), rows, n);
  return out;
}

template <class G>
std::vector<float> expanded(const std::vector<G>& x, i64 rows, i64 n) {
  std::vector<float> out(static_cast<std::size_t>(rows * n), NAN);
  from_groups(x.data(), out.data(), rows, n);
  return out;
}

template <class G>
std::vector<float> after_groups(const std::vector<float>& x, i64 rows = 1) {
  const i64 n = static_cast<i64>(x.size()) / rows;
  return expanded(grouped<G>(x, rows, n), rows, n);
}

float scale_of(std::uint16_t bits) {
  float out;
  from_fp16(&bits, &out, 1);
  return out;
}

// Value i of a group, by the definition of the formats.
double value_of(const Group8& g, i64 i) { return static_cast<double>(scale_of(g.scale)) * g.values[i]; }
double value_of(const Group4& g, i64 i) {
  const int pair = g.values[i % 16];
  const double product = static_cast<double>(scale_of(g.scale)) * (i < 16 ? pair & 15 : pair >> 4);
  return static_cast<double>(static_cast<float>(product + static_cast<double>(scale_of(g.minimum))));
}

// How many steps a value may be off. Scale and minimum of 4 bits minimize a sum of squares, so the least and
// the greatest weight may lie a step beyond the values.
double steps_off(const Group8&) { return 0.5; }
double steps_off(const Group4&) { return 1.5; }

template <class G>
void check_rounding() {
  for (const auto& [rows, n] :
       {std::array<i64, 2>{1, 32}, {3, 64}, {5, 1}, {2, 33}, {7, 100}, {4, 4096}, {0, 5}}) {
    const auto x = random_array<float>(rows * n, 7);
    const auto groups = grouped<G>(x, rows, n);
    const auto values = expanded(groups, rows, n);
    for (i64 r = 0; r < rows; ++r)
      for (i64 c = 0; c < n; ++c) {
        const G& g = groups[r * groups_in(n) + c / kGroup];
        const double value = static_cast<double>(values[r * n + c]), w = static_cast<double>(x[r * n + c]);
        ASSERT_EQ(value, value_of(g, c % kGroup));
        // The scale in fp16 is at most 2^-11 of itself off.
        const double step = std::fabs(static_cast<double>(scale_of(g.scale)));
        ASSERT_LE(std::fabs(value - w), step * steps_off(g) * (1 + 1e-6) + std::ldexp(std::fabs(w), -10));
      }
  }
}

TEST(Groups, HoldTheNearestValues) {
  on_every_isa([] {
    check_rounding<Group8>();
    check_rounding<Group4>();
  });
}

TEST(Groups, RepresentableWeightsAreKept) {
  on_every_isa([] {
    std::vector<float> eight(64), four(64);
    for (int i = 0; i < 64; ++i) {
      eight[i] = 0.25f * static_cast<float>(i * 4 - 127);  // with both ends of the range in each group
      four[i] = -0.5f * static_cast<float>(i % 16 - 8);
    }
    eight[0] = eight[32] = 0.25f * 127;
    EXPECT_EQ(after_groups<Group8>(eight), eight);
    EXPECT_EQ(after_groups<Group4>(four), four);
    // Of ggml's Q4_0, also without the codes 14 and 15, and with a scale below 0: multiples of an fp16
    // number.
    for (const float scale : {0.0137176514f, -0.0137176514f})
      for (const int most : {5, 6, 7}) {
        for (int i = 0; i < 64; ++i)
          four[i] = scale * static_cast<float>(i % 32 == 3 ? -8 : i * 5 % 13 - 12 + most);
        EXPECT_EQ(after_groups<Group4>(four), four) << scale << ", " << most;
      }
    // Of Q4_1: its own minimum, also in a short last group.
    std::vector<float> line(40);
    for (int i = 0; i < 40; ++i)
      line[i] = 0.0023841858f * static_cast<float>(i % 32 == 1 ? 15 : i * 7 % 16) + 0.0400085449f;
    EXPECT_EQ(after_groups<Group4>(line), line);
  });
}

// Rounding from the least to the greatest weight, as ggml does, has a larger error: 1.13 times for normal
// weights.
TEST(Groups, OfFourBitsHaveASmallError) {
  const auto x = random_array<float>(64 * 1024, 5);
  const auto y = after_groups<Group4>(x, 64);
  double error = 0, plain = 0;
  for (std::size_t g = 0; g < x.size(); g += 32) {
    const auto [low, high] = std::minmax_element(x.begin() + g, x.begin() + g + 32);
    const double step = static_cast<double>(*high - *low) / 15;
    for (std::size_t i = g; i < g + 32; ++i) {
      const double w = static_cast<double>(x[i]), from = static_cast<double>(*low);
      error += std::pow(static_cast<double>(y[i]) - w, 2);
      plain += std::pow(std::round((w - from) / step) * step + from - w, 2);
    }
  }
  EXPECT_LT(error, 0.95 * plain);
}

// The bytes of ggml's Q8_0 and Q4_1: the scale first, then the minimum (4 bits), then values in order, or
// element i and i + 16 in a byte.
TEST(Groups, HaveTheBytesOfGgml) {
  std::vector<float> x(32);
  for (int i = 0; i < 32; ++i) x[i] = static_cast<float>(i % 16 - 8);
  x[31] = 6;
  const Group4 g = grouped<Group4>(x, 1, 32)[0];
  EXPECT_EQ(g.scale, 0x3c00);    // 1
  EXPECT_EQ(g.minimum, 0xc800);  // -8
  EXPECT_EQ(g.values[0], 0x00);
  EXPECT_EQ(g.values[3], 0x33);
  EXPECT_EQ(g.values[15], 0xef);
  x[0] = -127;
  const Group8 h = grouped<Group8>(x, 1, 32)[0];
  EXPECT_EQ(h.scale, 0x3c00);
  EXPECT_EQ(h.values[0], -127);
  EXPECT_EQ(h.values[20], -4);
  EXPECT_EQ(sizeof h, 34u);
  EXPECT_EQ(sizeof g, 20u);
}

TEST(Groups, ZerosStayZeroAndWhatIsNotFiniteIsNaN) {
  on_every_isa([] {
    EXPECT_EQ(after_groups<Group8>(std::vector<float>(40, 0)), std::vector<float>(40, 0));
    EXPECT_EQ(after_groups<Group4>(std::vector<float>(40, 0)), std::vector<float>(40, 0));
    for (const float bad : {NAN, INFINITY, -INFINITY, 3e38f}) {
      std::vector<float> x(64, 127);
      x[5] = bad;
      const auto eight = after_groups<Group8>(x), four = after_groups<Group4>(x);
      for (int i = 0; i < 32; ++i) EXPECT_TRUE(std::isnan(eight[i]) && std::isnan(four[i])) << bad;
      for (int i = 32; i < 64; ++i) EXPECT_TRUE(eight[i] == 127 && four[i] == 127) << bad;
    }
  });
}

// Ranks and hosts must hold the same weights.
TEST(Groups, AreEqualOnEveryInstructionSetAndThreadCount) {
  const auto x = random_array<float>(50 * 1000, 3);
  std::vector<std::vector<float>> eight, four;
  on_every_isa([&] {
    eight.push_back(after_groups<Group8>(x, 50));
    four.push_back(after_groups<Group4>(x, 50));
    expect_same_on_any_threads([&] { return after_groups<Group8>(x, 50); });
  });
  for (std::size_t i = 1; i < eight.size(); ++i) {
    EXPECT_TRUE(same_bits(eight[i], eight[0]));
    EXPECT_TRUE(same_bits(four[i], four[0]));
  }
}

}  // namespace
}  // namespace redco::kernels

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cpu/nn.h"
#include "kernels/kernels_testing.h"

namespace redco::kernels {
namespace {

TEST(Embedding, ShardsAddUpToTheTable) {
  on_every_isa([] {
    const i64 V = 23, C = 37, R = 500;
    const auto table = random_array<float>(V * C, 1), g = random_array<float>(R * C, 2);
    auto ids = random_ids(R, 0, V - 1, 3);
    ids[7] = -1, ids[8] = V, ids[9] = -100;
    for (auto [first, rows] : {std::array<i64, 2>{0, V}, {0, 10}, {10, 13}, {V, 0}}) {
      std::vector<float> out(static_cast<std::size_t>(R * C), 9), want(out.size());
      embedding(table.data() + first * C, first, rows, ids.data(), out.data(), R, C);
      std::vector<float> sum(static_cast<std::size_t>(rows * C), 9), want_sum(sum.size());
      scatter_rows(g.data(), ids.data(), first, rows, sum.data(), R, C);
      for (i64 r = 0; r < R; ++r)
        for (i64 c = 0; c < C; ++c)
          if (ids[r] >= first && ids[r] < first + rows) {
            want[r * C + c] = table[ids[r] * C + c];
            want_sum[(ids[r] - first) * C + c] += g[r * C + c];  // in the order of r: the same bits
          }
      EXPECT_TRUE(same_bits(out, want));
      EXPECT_TRUE(same_bits(sum, want_sum));
      expect_same_on_any_threads([&] {
        scatter_rows(g.data(), ids.data(), first, rows, sum.data(), R, C);
        return sum;
      });
    }
    scatter_rows<float>(nullptr, nullptr, 0, 2, std::vector<float>(8).data(), 0, 4);
  });
}

TEST(Embedding, PickAndUnpickSelectTheColumnsOfTheShard) {
  const std::vector<float> x{1, 2, 3, 4, 5, 6, 7, 8}, g{10, 20, 30, 40};
  const std::vector<i32> ids{5, 4, 6, -100};  // of columns 5, 6
  std::vector<float> out(4), back(8, 9);
  pick(x.data(), ids.data(), 5, out.data(), 4, 2);
  EXPECT_THAT(out, testing::ElementsAre(1, 0, 6, 0));
  unpick(g.data(), ids.data(), 5, back.data(), 4, 2);
  EXPECT_THAT(back, testing::ElementsAre(10, 0, 0, 0, 0, 30, 0, 0));
}

template <class T>
void check_rope(i64 D, i64 rotary, bool interleaved) {
  const i64 B = 2, N = 9, H = 3, half = rotary / 2;
  const auto x = random_array<T>(B * N * H * D, 1);
  const auto positions = random_ids(B * N, 0, 2000, 2);
  std::vector<float> freq(static_cast<std::size_t>(half));
  for (i64 i = 0; i < half; ++i)
    freq[i] =
        static_cast<float>(std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(rotary)));
  std::vector<double> want(x.begin(), x.end());
  for (i64 t = 0; t < B * N * H; ++t)
    for (i64 i = 0; i < half; ++i) {
      const i64 p = t * D + (interleaved ? 2 * i : i), q = t * D + (interleaved ? 2 * i + 1 : i + half);
      const float angle = static_cast<float>(positions[t / H]) * freq[i];
      const double c = std::cos(static_cast<double>(angle)) * 1.25,
                   s = std::sin(static_cast<double>(angle)) * 1.25;
      want[p] = static_cast<double>(x[p]) * c - static_cast<double>(x[q]) * s;
      want[q] = static_cast<double>(x[q]) * c + static_cast<double>(x[p]) * s;
    }
  std::vector<T> y(x.size()), back(x.size());
  rope(x.data(), positions.data(), freq.data(), rotary, interleaved, 1, 1.25, y.data(), B, N, H, D);
  const double tolerance = std::is_same_v<T, float> ? 1e-6 : 1e-14;
  expect_close(y, want, tolerance);
  rope(y.data(), positions.data(), freq.data(), rotary, interleaved, -1, 1 / 1.25, back.data(), B, N, H, D);
  for (i64 i = 0; i < B * N * H * D; ++i)  // dims that are not rotated are copied; rotated ones are restored
    EXPECT_NEAR(static_cast<double>(back[i]), static_cast<double>(x[i]), 4 * tolerance);
  auto in_place = x;
  rope(in_place.data(), positions.data(), freq.data(), rotary, interleaved, 1, 1.25, in_place.data(), B, N, H,
       D);
  EXPECT_TRUE(same_bits(in_place, y));
}

TEST(Rope, RotatesPairs) {
  on_every_isa([] {
    for (bool interleaved : {false, true})
      for (auto [D, rotary] : {std::array<i64, 2>{64, 64}, {64, 32}, {10, 6}, {7, 2}, {8, 0}}) {
        check_rope<float>(D, rotary, interleaved);
        check_rope<double>(D, rotary, interleaved);
      }
  });
}

}  // namespace
}  // namespace redco::kernels

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/sanitized.h"
#include "kernels/cpu/nn.h"
#include "kernels/kernels_testing.h"

namespace redco::kernels {
namespace {

// Under a sanitizer the sums of a row aren't vectorized: one accumulator rounds 16 times as often as one of
// 16, and rounding errors grow with the root of their number.
#if REDCO_SANITIZED
constexpr double kSoftmaxTolerance = 4e-6;
#else
constexpr double kSoftmaxTolerance = 1e-6;
#endif

TEST(Softmax, AgreesWithTheSlowTwin) {
  on_every_isa([] {
    for (auto [R, C] : {std::array<i64, 2>{0, 3}, {2, 0}, {3, 1}, {7, 33}, {40, 1000}}) {
      auto x = random_array<float>(R * C, 1, 5);
      std::vector<double> want(x.size());
      for (i64 r = 0; r < R; ++r) {
        double s = 0;
        for (i64 c = 0; c < C; ++c) s += std::exp(static_cast<double>(x[r * C + c]));
        for (i64 c = 0; c < C; ++c) want[r * C + c] = std::exp(static_cast<double>(x[r * C + c])) / s;
      }
      std::vector<float> y(x.size());
      softmax(x.data(), y.data(), R, C);
      expect_close(y, want, kSoftmaxTolerance);
      softmax(x.data(), x.data(), R, C);  // in place
      EXPECT_TRUE(same_bits(x, y));
    }
  });
}

TEST(LogSoftmax, AgreesWithTheSlowTwin) {
  on_every_isa([] {
    for (auto [R, C] :
         {std::array<i64, 2>{0, 3}, {2, 0}, {3, 1}, {1000, 2}, {171, 3}, {9, 7}, {7, 33}, {40, 1000}}) {
      const auto x = random_array<float>(R * C, 1, 5), g = random_array<float>(R * C, 2);
      std::vector<double> want(x.size()), want_dx(x.size());
      for (i64 r = 0; r < R; ++r) {
        double s = 0, sum = 0;
        for (i64 c = 0; c < C; ++c) {
          s += std::exp(static_cast<double>(x[r * C + c]));
          sum += static_cast<double>(g[r * C + c]);
        }
        for (i64 c = 0; c < C; ++c) {
          want[r * C + c] = static_cast<double>(x[r * C + c]) - std::log(s);
          want_dx[r * C + c] = static_cast<double>(g[r * C + c]) - std::exp(want[r * C + c]) * sum;
        }
      }
      std::vector<float> y(x.size()), dx(x.size());
      log_softmax(x.data(), y.data(), R, C);
      expect_close(y, want, kSoftmaxTolerance);
      log_softmax_backward(y.data(), g.data(), dx.data(), R, C);
      expect_close(dx, want_dx, 4 * kSoftmaxTolerance);
    }
  });
}

TEST(LogSoftmax, KeepsInfinityAndNan) {
  on_every_isa([] {
    for (const i64 C : {2, 5, 40}) {
      std::vector<float> x(static_cast<std::size_t>(3 * C), -kInf), y(x.size());
      x[static_cast<std::size_t>(C)] = 2.0f;      // row 1: one finite number
      x[static_cast<std::size_t>(2 * C)] = 1.0f;  // row 2: with NaN
      x[static_cast<std::size_t>(3 * C - 1)] = kNan;
      log_softmax(x.data(), y.data(), 3, C);
      for (i64 c = 0; c < C; ++c) {
        EXPECT_TRUE(std::isnan(y[c]));  // row 0: there is no distribution
        EXPECT_EQ(y[C + c], c == 0 ? 0 : -kInf);
        EXPECT_TRUE(std::isnan(y[2 * C + c]));
      }
    }
  });
}

TEST(Softmax, MaskedRowsGiveZerosAndNanIsKept) {
  on_every_isa([] {
    for (i64 C : {1, 5, 40}) {
      std::vector<float> x(static_cast<std::size_t>(3 * C), -kInf), y(x.size());
      x[static_cast<std::size_t>(C)] = 2.0f;          // row 1: one key
      x[static_cast<std::size_t>(3 * C - 1)] = kNan;  // row 2: NaN among -inf
      softmax(x.data(), y.data(), 3, C);
      for (i64 c = 0; c < C; ++c) {
        EXPECT_EQ(y[c], 0);
        EXPECT_EQ(y[C + c], c == 0 ? 1 : 0);
        EXPECT_TRUE(std::isnan(y[2 * C + c]));
      }
    }
  });
}

TEST(CrossEntropy, RowMaximaAreExactAndKeepNan) {
  on_every_isa([] {
    for (auto [R, C] : {std::array<i64, 2>{1, 1}, {60, 3}, {9, 7}, {5, 8}, {37, 5}, {5, 37}, {3, 5000}}) {
      auto x = random_array<float>(R * C, 1);
      std::vector<float> top(static_cast<std::size_t>(R)), want(top.size(), -kInf);
      for (i64 i = 0; i < R * C; ++i) want[i / C] = std::max(want[i / C], x[i]);
      row_max(x.data(), top.data(), R, C);
      EXPECT_EQ(top, want);
      for (const i64 at : {i64{0}, R * C / 2, R * C - 1}) {
        auto with_nan = x;
        with_nan[static_cast<std::size_t>(at)] = kNan;
        row_max(with_nan.data(), top.data(), R, C);
        for (i64 r = 0; r < R; ++r)
          EXPECT_EQ(std::isnan(top[r]), r == at / C) << r << " of " << R << " x " << C;
      }
    }
  });
}

// A vocabulary V cut into shards: loss and gradient equal those of the whole vocabulary.
TEST(CrossEntropy, ShardsGiveTheUnshardedResult) {
  const i64 R = 13, V = 101, first_cut = 40;
  const auto x = random_array<double>(R * V, 1, 3), g = random_array<double>(R, 2);
  auto ids = random_ids(R, 0, V - 1, 3);
  ids[4] = -100;
  ids[5] = 39, ids[6] = 40;
  const double h = 1e-5;
  const auto loss_of = [&](const std::vector<double>& z, i64 r) {  // -sum target log p
    double s = 0;
    for (i64 c = 0; c < V; ++c) s += std::exp(z[r * V + c]);
    return ids[r] < 0 ? 0 : std::log(s) - z[r * V + ids[r]];
  };
  on_every_isa([&] {
    std::vector<double> sums(static_cast<std::size_t>(R)), targets(sums), tops(sums.size(), -INFINITY),
        dx(x.size());
    struct Shard {
      i64 first, width;
      std::vector<double> x;
    };
    std::vector<Shard> shards{{0, first_cut, {}}, {first_cut, V - first_cut, {}}, {V, 0, {}}};
    for (Shard& s : shards)
      for (i64 r = 0; r < R; ++r)
        s.x.insert(s.x.end(), x.begin() + r * V + s.first, x.begin() + r * V + s.first + s.width);
    for (const Shard& s : shards) {
      std::vector<double> top(static_cast<std::size_t>(R));
      row_max(s.x.data(), top.data(), R, s.width);
      for (std::size_t r = 0; r < top.size(); ++r) tops[r] = std::max(tops[r], top[r]);
      if (s.width == 0) {
        EXPECT_THAT(top, testing::Each(-INFINITY));
      }
    }
    for (const Shard& s : shards) {
      std::vector<double> sum(static_cast<std::size_t>(R)), target(sum);
      sum_exp_and_target(s.x.data(), tops.data(), ids.data(), s.first, sum.data(), target.data(), R, s.width);
      for (std::size_t r = 0; r < sum.size(); ++r) sums[r] += sum[r], targets[r] += target[r];
    }
    std::vector<double> lse(static_cast<std::size_t>(R));
    for (i64 r = 0; r < R; ++r) {
      lse[r] = tops[r] + std::log(sums[r]);
      EXPECT_NEAR(targets[r], ids[r] < 0 ? 0 : x[r * V + ids[r]], 1e-14);
    }
    for (const Shard& s : shards) {
      std::vector<double> d(s.x.size());
      cross_entropy_backward(s.x.data(), lse.data(), ids.data(), s.first, g.data(), d.data(), R, s.width);
      for (i64 r = 0; r < R; ++r)
        for (i64 c = 0; c < s.width; ++c) dx[r * V + s.first + c] = d[r * s.width + c];
    }
    std::vector<double> want(x.size()), z = x;
    for (i64 i = 0; i < R * V; ++i) {
      z[i] = x[i] + h;
      const double up = loss_of(z, i / V);
      z[i] = x[i] - h;
      want[i] = g[i / V] * (up - loss_of(z, i / V)) / (2 * h);
      z[i] = x[i];
    }
    expect_close(dx, want, 1e-8);
    // fp32: exp of arguments up to ~10, which amplifies their rounding 10 times.
    std::vector<float> xf(x.begin(), x.end()), lf(lse.begin(), lse.end()), gf(g.begin(), g.end()),
        df(x.size());
    cross_entropy_backward(xf.data(), lf.data(), ids.data(), 0, gf.data(), df.data(), R, V);
    expect_close(df, dx, 1e-5);
  });
}

TEST(CrossEntropy, ARowOfMinusInfinityHasSumZero) {
  std::vector<float> x(20, -kInf), top(1), sum(1), target(1);
  const i32 id = 3;
  row_max(x.data(), top.data(), 1, 20);
  sum_exp_and_target(x.data(), top.data(), &id, 0, sum.data(), target.data(), 1, 20);
  EXPECT_EQ(top[0], -kInf);
  EXPECT_EQ(sum[0], 0);
  EXPECT_EQ(target[0], -kInf);
}

TEST(Softmax, SameBitsOnAnyThreads) {
  const i64 R = 200, C = 777;
  const auto x = random_array<float>(R * C, 1);
  expect_same_on_any_threads([&] {
    std::vector<float> y(x.size());
    softmax(x.data(), y.data(), R, C);
    return y;
  });
}

}  // namespace
}  // namespace redco::kernels

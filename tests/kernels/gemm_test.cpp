#include "kernels/cpu/products/gemm.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "kernels/isa.h"
#include "kernels/kernels_testing.h"
#include "kernels/peak.h"

namespace redco::kernels {
namespace {

template <class T>
struct Case {
  bool ta, tb;
  i64 m, n, k, pad;
  T alpha, beta;
};

template <class T>
std::vector<T> run(const Case<T>& x, const std::vector<T>& a, const std::vector<T>& b, std::vector<T> c) {
  const i64 lda = (x.ta ? x.m : x.k) + x.pad, ldb = (x.tb ? x.k : x.n) + x.pad, ldc = x.n + x.pad;
  gemm(x.ta, x.tb, x.m, x.n, x.k, x.alpha, a.data(), lda, b.data(), ldb, x.beta, c.data(), ldc);
  return c;
}

template <class T>
void check(const Case<T>& x) {
  const i64 lda = (x.ta ? x.m : x.k) + x.pad, ldb = (x.tb ? x.k : x.n) + x.pad, ldc = x.n + x.pad;
  const auto a = random_array<T>((x.ta ? x.k : x.m) * lda, 1),
             b = random_array<T>((x.tb ? x.n : x.k) * ldb, 2);
  auto c = random_array<T>(x.m * ldc, 3);
  std::vector<double> want(c.begin(), c.end());
  for (i64 i = 0; i < x.m; ++i)
    for (i64 j = 0; j < x.n; ++j) {
      double s = 0;
      for (i64 p = 0; p < x.k; ++p)
        s += static_cast<double>(a[x.ta ? p * lda + i : i * lda + p]) *
             static_cast<double>(b[x.tb ? j * ldb + p : p * ldb + j]);
      double& w = want[i * ldc + j];
      w = static_cast<double>(x.alpha) * s + (x.beta == 0 ? 0 : static_cast<double>(x.beta) * w);
    }
  if (x.beta == 0)  // not read: NaN must not remain
    for (i64 i = 0; i < x.m; ++i)
      for (i64 j = 0; j < x.n; ++j) c[i * ldc + j] = std::numeric_limits<T>::quiet_NaN();
  // k products of standard normals, each rounded: errors of about eps sqrt(k) |s|, |s| ~ sqrt(k); times 4.
  const double eps = std::numeric_limits<T>::epsilon();
  expect_close(run(x, a, b, c), want, 4 * eps * (x.k + 4),
               fmt::format("{}{} m={} n={} k={} pad={}", x.ta, x.tb, x.m, x.n, x.k, x.pad));
}

template <class T>
void check_all() {
  for (bool ta : {false, true})
    for (bool tb : {false, true})
      for (i64 pad : {0, 3})
        for (auto [m, n, k] : {std::array<i64, 3>{0, 3, 4},
                               {3, 0, 4},
                               {3, 4, 0},
                               {1, 1, 1},
                               {1, 300, 70},
                               {2, 5, 33},
                               {3, 17, 64},
                               {5, 64, 5},
                               {7, 1030, 9},
                               {8, 67, 100},
                               {9, 7, 31},
                               {33, 65, 17}}) {
          check<T>({ta, tb, m, n, k, pad, T(1), T(0)});
          check<T>({ta, tb, m, n, k, pad, T(0.5), T(1)});
          check<T>({ta, tb, m, n, k, pad, T(0), T(2)});
        }
}

TEST(Gemm, AgreesWithTheSlowTwin) {
  on_every_isa([] {
    check_all<float>();
    check_all<double>();
  });
}

TEST(Gemm, LargeProductsAgreeWithTheSlowTwin) {
  for (bool ta : {false, true})
    for (bool tb : {false, true}) check<float>({ta, tb, 515, 261, 37, 1, 1, 0});
}

TEST(Gemm, SameBitsOnAnyThreads) {
  for (bool ta : {false, true})
    for (bool tb : {false, true})
      for (i64 m : {1, 8, 300, 700}) {
        const Case<float> x{ta, tb, m, 530, 260, 0, 1, 0};
        const auto a = random_array<float>(m * 260, 1), b = random_array<float>(530 * 260, 2);
        expect_same_on_any_threads(
            [&] { return run(x, a, b, std::vector<float>(static_cast<std::size_t>(m * 530))); });
      }
  // One tile, so deep that OpenBLAS would use several threads.
  const Case<float> deep{true, false, 50, 70, 4000, 0, 1, 0};
  const auto a = random_array<float>(50 * 4000, 1), b = random_array<float>(70 * 4000, 2);
  expect_same_on_any_threads([&] { return run(deep, a, b, std::vector<float>(50 * 70)); });
}

// Each rank has one kernel thread; all run at the same time and get the same bits as alone.
TEST(Gemm, ConcurrentRanksGetTheSameBits) {
  const Case<float> x{false, true, 130, 270, 64, 0, 1, 0};
  const auto a = random_array<float>(130 * 64, 1), b = random_array<float>(270 * 64, 2);
  const std::vector<float> zero(130 * 270), want = run(x, a, b, zero);
  std::vector<int> good(4);
  std::vector<std::thread> ranks;
  for (int r = 0; r < 4; ++r)
    ranks.emplace_back([&, r] {
      set_threads(1);
      bool same = true;
      for (int i = 0; i < 20; ++i) same = same && same_bits(run(x, a, b, zero), want);
      good[static_cast<std::size_t>(r)] = same;
    });
  for (auto& t : ranks) t.join();
  EXPECT_THAT(good, testing::Each(1));
}

TEST(GemmBatch, EqualsOneGemmPerMatrix) {
  for (auto [batch, m, n, k] :
       {std::array<i64, 4>{0, 2, 2, 2}, {1, 3, 4, 5}, {5, 3, 4, 5}, {3, 600, 260, 40}})
    for (bool shared : {false, true}) {
      const auto a = random_array<float>(std::max<i64>(1, batch) * m * k, 1);
      const auto b = random_array<float>(std::max<i64>(1, batch) * k * n, 2);
      std::vector<float> c(static_cast<std::size_t>(batch * m * n)), want(c);
      gemm_batch<float>(batch, false, true, m, n, k, 1, a.data(), k, m * k, b.data(), k, shared ? 0 : n * k,
                        0, c.data(), n, m * n);
      for (i64 i = 0; i < batch; ++i)
        gemm<float>(false, true, m, n, k, 1, a.data() + i * m * k, k, b.data() + (shared ? 0 : i * n * k), k,
                    0, want.data() + i * m * n, n);
      EXPECT_TRUE(same_bits(c, want)) << batch << " x " << m;
    }
}

TEST(Ceilings, ArePositiveAndKeepTheThreadCount) {
  const int before = threads();
  EXPECT_GT(measure_gemm_ceiling(64, 64, 64, 2), 1e6);
  EXPECT_EQ(measure_bf16_ceiling(2) > 1e6, isa() >= Isa::avx512_bf16);
  EXPECT_GT(measure_read_ceiling(1 << 20, 2), 1e6);
  EXPECT_EQ(threads(), before);
}

}  // namespace
}  // namespace redco::kernels

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <span>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/lists.h"
#include "kernels/kernels_testing.h"
#include "kernels/square_sum.h"

namespace redco::kernels {
namespace {

struct ReduceCase {
  Shape shape;
  std::vector<int> dims;  // the dims that are reduced
};

std::vector<ReduceCase> cases() {
  return {{{}, {}},
          {{7}, {}},
          {{7}, {0}},
          {{0}, {0}},
          {{0, 3}, {0}},
          {{3, 0}, {0}},
          {{3, 0}, {1}},
          {{50001}, {0}},
          {{5, 37}, {1}},
          {{37, 5}, {0}},
          {{3000, 70}, {0}},
          {{4, 5, 6}, {1}},
          {{4, 5, 6}, {0, 2}},
          {{4, 5, 6}, {0, 1, 2}},
          {{2, 3, 4, 5}, {0, 2}},
          {{2, 3, 4, 5}, {1, 3}},
          {{3, 1, 4}, {1}},
          {{3, 1, 4}, {0, 2}},
          {{2, 40000}, {1}},
          {{2, 900, 2100}, {1}}};
}

template <class T>
void check(const ReduceCase& c) {
  const auto x = random_array<T>(numel(c.shape), 1);
  bool flags[8] = {};
  for (int d : c.dims) flags[d] = true;
  const std::span<const bool> reduce(flags, c.shape.size());
  i64 outputs = 1;
  for (std::size_t d = 0; d < c.shape.size(); ++d) outputs *= flags[d] ? 1 : c.shape[d];
  std::vector<double> sum(static_cast<std::size_t>(outputs));
  for (i64 i = 0; i < numel(c.shape); ++i) {
    i64 rest = i, o = 0, stride = 1;
    for (std::size_t d = c.shape.size(); d-- > 0;) {
      if (!flags[d]) o += rest % c.shape[d] * stride, stride *= c.shape[d];
      rest /= c.shape[d];
    }
    sum[o] += x[i];
  }
  const auto run = [&] {
    std::vector<T> out(sum.size());
    const auto n = static_cast<std::size_t>(reduce_workspace(c.shape, reduce));
    reduce_sum<T>(x.data(), c.shape, reduce, out.data(), std::vector<double>(n, 7e30).data());
    return out;
  };
  // Sums are in fp64 and rounded once. The partial sums of |x| ~ 1 reach ~ sqrt(n) < 300; 300 * 2^-53 * n is
  // negligible.
  expect_close(run(), sum, std::is_same_v<T, float> ? 1e-6 : 1e-11, to_string(c.shape));
  expect_same_on_any_threads(run, to_string(c.shape));
}

TEST(Reduce, AgreesWithTheSlowTwin) {
  on_every_isa([] {
    for (const ReduceCase& c : cases()) {
      check<float>(c);
      check<double>(c);
    }
  });
}

std::vector<double> square_words(const Views& x) {
  std::vector<double> words(SquareSum::kWords),
      room(static_cast<std::size_t>(sum_squares_workspace(total_numel(x))));
  sum_squares(x, words.data(), room.data());
  return words;
}

std::vector<double> square_words(std::span<const float> x) { return square_words(Views{view_of(x)}); }

TEST(Reduce, SumOfSquaresMatchesFp64OnAnyThreads) {
  on_every_isa([] {
    for (i64 n : {0, 1, 1000, 70001}) {
      const auto x = random_array<float>(n, 3);
      double want = 0;
      for (float v : x) want += static_cast<double>(v) * v;
      EXPECT_NEAR(SquareSum::value(square_words(x)), want, 1e-12 * want);
      expect_same_on_any_threads([&] { return square_words(x); });
    }
  });
}

// Numbers of all sizes, in any order and in any parts.
TEST(Reduce, SumOfSquaresHasTheSameBitsInAnyOrder) {
  on_every_isa([] {
    std::mt19937_64 random(7);
    for (const int spread : {0, 12, 30, 120}) {
      std::vector<float> x = random_array<float>(60000, 5);
      for (float& v : x) v = std::ldexp(v, static_cast<int>(random() % (2 * spread + 1)) - spread);
      const double all = SquareSum::value(square_words(x));
      double want = 0;
      for (float v : x) want += static_cast<double>(v) * v;
      EXPECT_NEAR(all, want, 1e-12 * want);
      for (int round = 0; round < 5; ++round) {
        std::shuffle(x.begin(), x.end(), random);
        std::vector<double> sum(SquareSum::kWords);
        Views list;
        for (std::size_t at = 0; at < x.size();) {
          const std::size_t n = std::min(x.size() - at, 1 + random() % (round % 2 ? 30000 : 300));
          const auto part = std::span<const float>(x).subspan(at, n);
          const auto words = square_words(part);
          for (int w = 0; w < SquareSum::kWords; ++w) sum[w] += words[w];
          list.push_back(view_of(part));
          at += n;
        }
        SquareSum::normalize(sum);
        EXPECT_EQ(SquareSum::value(sum), all);
        EXPECT_EQ(SquareSum::value(square_words(list)), all);
        expect_same_on_any_threads([&] { return square_words(list); });
      }
    }
  });
}

TEST(Reduce, SumOfSquaresOfExtremes) {
  const auto sum = [](std::vector<float> x) { return SquareSum::value(square_words(x)); };
  on_every_isa([&] {
    EXPECT_EQ(sum({}), 0);
    EXPECT_EQ(sum({0, 0}), 0);
    EXPECT_EQ(sum({3, 4}), 25);
    const float least = std::numeric_limits<float>::denorm_min(), most = std::numeric_limits<float>::max();
    EXPECT_EQ(sum({least}), std::ldexp(1.0, -298));
    EXPECT_EQ(sum({most, least}), static_cast<double>(most) * most);
    EXPECT_EQ(sum({1, std::ldexp(1.0f, -20)}), 1 + std::ldexp(1.0, -40));
    const float inf = std::numeric_limits<float>::infinity();
    EXPECT_TRUE(std::isnan(sum({1, inf})));
    EXPECT_TRUE(std::isnan(sum({kNan, 1})));
    // In a block, before and after finite parts.
    const std::vector<float> finite = {1, 2}, not_finite = {inf};
    const View a = view_of(std::span(finite)), b = view_of(std::span(not_finite));
    for (const Views& list : {Views{a, b}, Views{b, a}, Views{a, b, a}})
      EXPECT_TRUE(std::isnan(SquareSum::value(square_words(list))));
  });
}

}  // namespace
}  // namespace redco::kernels

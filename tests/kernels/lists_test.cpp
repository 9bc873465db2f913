// Kernels on lists of tensors have the bits of a call for each tensor.
#include "kernels/cpu/lists.h"

#include <functional>

#include "kernels/cpu/elementwise.h"
#include "kernels/kernels_testing.h"
#include "kernels/square_sum.h"

namespace redco::kernels {
namespace {

constexpr i64 kBlock = 16384;  // as in src/kernels/cpu/pool.h
// Borders of views at borders of blocks and inside of them; empty views.
const std::vector<i64> kListSizes = {0, 1, 17, kBlock, 3, 0, 40001, 5, 2 * kBlock, 100000, 64, 0};

std::vector<std::vector<float>> arrays(unsigned seed) {
  std::vector<std::vector<float>> out;
  for (i64 n : kListSizes) out.push_back(random_array<float>(n, seed++));
  return out;
}

template <class T>
Views views_of(std::vector<std::vector<T>>& tensors) {
  Views out;
  for (auto& t : tensors) out.push_back(view_of(std::span(t)));
  return out;
}

// More elements than fit into 1024 blocks of the loop.
TEST(Lists, LongListsHaveEachElementOnce) {
  Views list;
  const std::vector<float> ones(40001, 1);
  i64 n = 0;
  for (i64 k = 0; n < 1100 * kBlock; ++k) {
    const auto part = std::span<const float>(ones).first(k % 3 == 0 ? 40001 : k % 3 == 1 ? 7 : 0);
    list.push_back(view_of(part));
    n += list.back().numel();
  }
  expect_same_on_any_threads([&] {
    std::vector<double> words(SquareSum::kWords), room(static_cast<std::size_t>(sum_squares_workspace(n)));
    sum_squares(list, words.data(), room.data());
    EXPECT_EQ(SquareSum::value(words), static_cast<double>(n));
    return words;
  });
}

// Calls kernel(x, y, m, v), in place on all but x, with lists and with each tensor alone.
void expect_bits_of_single_calls(
    const std::function<void(const Views&, const Views&, const Views&, const Views&)>& kernel) {
  on_every_isa([&] {
    auto x = arrays(1), y = arrays(20), m = arrays(40), v = arrays(60);
    for (auto& t : v)
      for (float& e : t) e *= e;
    auto y1 = y, m1 = m, v1 = v;
    for (std::size_t k = 0; k < x.size(); ++k) {
      const auto one = [&](auto& list) { return Views{view_of(std::span(list[k]))}; };
      kernel(one(x), one(y1), one(m1), one(v1));
    }
    EXPECT_FALSE(same_bits(y[6], y1[6]));
    expect_same_on_any_threads([&] {
      auto y2 = y, m2 = m, v2 = v;
      kernel(views_of(x), views_of(y2), views_of(m2), views_of(v2));
      std::vector<float> all;
      for (std::size_t k = 0; k < x.size(); ++k) {
        EXPECT_TRUE(same_bits(y1[k], y2[k]) && same_bits(m1[k], m2[k]) && same_bits(v1[k], v2[k])) << k;
        all.insert(all.end(), y2[k].begin(), y2[k].end());
      }
      return all;
    });
  });
}

const AdamW kAdamW = {.lr = 1e-3,
                      .beta1 = 0.9,
                      .beta2 = 0.999,
                      .eps = 1e-8,
                      .weight_decay = 0.01,
                      .bias1 = 0.1,
                      .bias2 = 0.001,
                      .grad_scale = 0.5};
const Sgd kSgd = {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .grad_scale = 0.5};

TEST(Lists, AdamWHasTheBitsOfSingleCalls) {
  expect_bits_of_single_calls(
      [](const Views& x, const Views& y, const Views& m, const Views& v) { adamw(kAdamW, y, x, m, v); });
}

TEST(Lists, SgdHasTheBitsOfSingleCalls) {
  expect_bits_of_single_calls(
      [](const Views& x, const Views& y, const Views& m, const Views&) { sgd(kSgd, y, x, m); });
  expect_bits_of_single_calls(
      [](const Views& x, const Views& y, const Views&, const Views&) { sgd(kSgd, y, x, {}); });
}

TEST(Lists, AveragesHaveTheBitsOfSingleCalls) {
  expect_bits_of_single_calls(
      [](const Views& x, const Views& y, const Views&, const Views&) { average(0.01, x, y); });
}

TEST(Lists, AverageAgreesWithTheSlowTwin) {
  on_every_isa([] {
    auto x = arrays(1), y = arrays(20);
    const auto before = y;
    average(0.3, views_of(x), views_of(y));
    for (std::size_t k = 0; k < x.size(); ++k) {
      std::vector<double> want;
      for (std::size_t i = 0; i < x[k].size(); ++i) want.push_back(0.7 * before[k][i] + 0.3 * x[k][i]);
      expect_close(y[k], want, 5e-7);  // four roundings of numbers up to the size of x and y
    }
  });
}

TEST(Lists, RoundedWeightsAreThoseOfACast) {
  on_every_isa([] {
    auto x = arrays(1);
    std::vector<std::vector<bf16>> y;
    for (i64 n : kListSizes) y.emplace_back(static_cast<std::size_t>(n));
    round_weights(views_of(x), views_of(y));
    for (std::size_t k = 0; k < x.size(); ++k) {
      std::vector<bf16> want(x[k].size());
      to_bf16(x[k].data(), want.data(), kListSizes[k]);
      EXPECT_TRUE(same_bits(y[k], want)) << k;
    }
  });
}

// PyTorch's single-tensor AdamW in fp64.
TEST(Lists, AdamWAgreesWithTheSlowTwin) {
  const i64 n = 40001;
  auto p0 = random_array<float>(n, 1), g = random_array<float>(n, 2);
  on_every_isa([&] {
    std::vector<float> p = p0, m(p.size()), v(p.size());
    std::vector<double> wp(p.begin(), p.end()), wm(p.size()), wv(p.size());
    const double lr = 1e-3f, b1 = 0.9f, b2 = 0.999f, eps = 1e-8f, wd = 0.01f, scale = 0.5;
    for (int step = 1; step <= 3; ++step) {
      const double bias1 = 1 - std::pow(b1, step), bias2 = 1 - std::pow(b2, step);
      for (i64 i = 0; i < n; ++i) {
        const double d = g[i] * scale;
        wp[i] *= 1 - lr * wd;
        wm[i] += (d - wm[i]) * (1 - b1);
        wv[i] = wv[i] * b2 + (1 - b2) * d * d;
        wp[i] -= lr / bias1 * wm[i] / (std::sqrt(wv[i]) / std::sqrt(bias2) + eps);
      }
      adamw({static_cast<float>(lr), static_cast<float>(b1), static_cast<float>(b2), static_cast<float>(eps),
             static_cast<float>(wd), static_cast<float>(bias1), static_cast<float>(bias2), 0.5f},
            {view_of(std::span(p))}, {view_of(std::span(g))}, {view_of(std::span(m))},
            {view_of(std::span(v))});
    }
    // A step rounds p twice, the step itself is 1e-3; m and v are rounded four times.
    expect_close(p, wp, 5e-7);
    expect_close(m, wm, 5e-7);
    expect_close(v, wv, 5e-7);
  });
}

}  // namespace
}  // namespace redco::kernels

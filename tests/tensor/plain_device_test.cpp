// The plain device draws the CPU's numbers and makes its optimizer steps.
#include "support/plain_device.h"

#include <gtest/gtest.h>

#include "kernels/square_sum.h"
#include "ops/create.h"
#include "support/ranks.h"

namespace redco::testing {
namespace {

std::vector<double> on_device(const Device& device, const std::function<Tensor(Context&)>& f) {
  std::vector<double> out;
  run_threads(1, [&](Group& g) {
    Context c({1, 1}, g.split(0), Queue::immediate(device));
    const Context::Use use(c);
    out = to_values(f(c));
  });
  return out;
}

void expect_same(const std::function<Tensor(Context&)>& f, double tolerance = 0) {
  EXPECT_LE(distance(on_device(plain_device(), f), on_device(cpu_device(), f)), tolerance);
}

TEST(PlainDevice, DrawsTheSameNumbers) {
  expect_same([](Context&) { return random_uniform({2, 3, 5, 70}, 99); });
  // libm's functions in another order of rounding
  expect_same([](Context&) { return random_normal({4, 5000}, 7); }, 1e-7);
}

Tensor square_words(Context& c, double scale, bool finite) {
  std::vector<double> values = Random(5).values(3000, -scale, scale);
  if (!finite) values[1234] = INFINITY;
  const Tensor x = place({3, 1000}, values, {}, DType::f32);
  const Tensor words = zeros({SquareSum::kWords}, DType::f64);
  const i64 room = c.queue().kernels().sum_squares_workspace(2 * x.numel());
  c.run(&Kernels::sum_squares, Views{x.view(), x.view()}, words, Tensor({room}, DType::f64, {}));
  return words;
}

// The words may differ below the three highest bins, which the CPU drops.
TEST(PlainDevice, SumsSquaresToTheSameBits) {
  const auto sum = [](const Device& device, double scale, bool finite) {
    return SquareSum::value(on_device(device, [=](Context& c) { return square_words(c, scale, finite); }));
  };
  for (const double scale : {1e-22, 1e-3, 1.0, 1e15}) {
    EXPECT_EQ(sum(plain_device(), scale, true), sum(cpu_device(), scale, true));
    EXPECT_GT(sum(plain_device(), scale, true), 1000 * scale * scale);
  }
  EXPECT_TRUE(std::isnan(sum(plain_device(), 1, false)) && std::isnan(sum(cpu_device(), 1, false)));
}

TEST(PlainDevice, MakesTheSameStepsOfAdamW) {
  const kernels::AdamW step{.lr = 1e-2,
                            .beta1 = 0.9,
                            .beta2 = 0.999,
                            .eps = 1e-8,
                            .weight_decay = 0.1,
                            .bias1 = 0.1,
                            .bias2 = 1e-3,
                            .grad_scale = 0.7};
  expect_same(
      [&](Context& c) {
        const Tensor p = place({500}, Random(1).values(500), {}, DType::f32);
        const Tensor g = place({500}, Random(2).values(500), {}, DType::f32);
        const Tensor m = zeros({500}), v = zeros({500});
        c.run(&Kernels::adamw, step, Views{p.view()}, Views{g.view()}, Views{m.view()}, Views{v.view()});
        return p;
      },
      1e-6);
}

}  // namespace
}  // namespace redco::testing

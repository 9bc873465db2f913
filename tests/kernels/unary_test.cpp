#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "kernels/cpu/elementwise.h"
#include "kernels/kernels_testing.h"

namespace redco::kernels {
namespace {

struct Op {
  Unary op;
  const char* name;
  std::function<double(double)> f;
  double low, high;  // the tested domain
};

const std::vector<Op>& all_ops() {
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  const double a = std::sqrt(2 / M_PI);
  static const std::vector<Op> ops = {
      {Unary::neg, "neg", [](double x) { return -x; }, -9, 9},
      {Unary::abs, "abs", [](double x) { return std::fabs(x); }, -9, 9},
      {Unary::sign, "sign", [](double x) { return (x > 0) - (x < 0); }, -9, 9},
      {Unary::exp, "exp", [](double x) { return std::exp(x); }, -85, 88},
      {Unary::log, "log", [](double x) { return std::log(x); }, 1e-30, 9},
      {Unary::sqrt, "sqrt", [](double x) { return std::sqrt(x); }, 1e-30, 9},
      {Unary::rsqrt, "rsqrt", [](double x) { return 1 / std::sqrt(x); }, 0.01, 9},
      {Unary::reciprocal, "reciprocal", [](double x) { return 1 / x; }, 0.1, 9},
      {Unary::square, "square", [](double x) { return x * x; }, -9, 9},
      {Unary::sin, "sin", [](double x) { return std::sin(x); }, -9, 9},
      {Unary::cos, "cos", [](double x) { return std::cos(x); }, -9, 9},
      {Unary::tanh, "tanh", [](double x) { return std::tanh(x); }, -9, 9},
      {Unary::sigmoid, "sigmoid", sigmoid, -9, 9},
      {Unary::erf, "erf", [](double x) { return std::erf(x); }, -5, 5},
      {Unary::relu, "relu", [](double x) { return std::max(x, 0.0); }, -9, 9},
      {Unary::step, "step", [](double x) { return x > 0 ? 1.0 : 0.0; }, -9, 9},
      {Unary::gelu, "gelu", [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2)); }, -6, 9},
      {Unary::gelu_tanh, "gelu_tanh",
       [=](double x) { return x * sigmoid(2 * a * (x + 0.044715 * x * x * x)); }, -5, 9},
      {Unary::gelu_quick, "gelu_quick", [=](double x) { return x * sigmoid(1.702 * x); }, -9, 9},
      {Unary::silu, "silu", [=](double x) { return x * sigmoid(x); }, -9, 9},
      {Unary::softplus, "softplus",
       [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }, -20, 30},
  };
  return ops;
}

// If a float argument is scaled before an exponential, its rounding (2^-24 relative, twice) is multiplied by
// the size of the argument: a sigmoid's tail at |arg| = 20 has a relative error of 20 * 2^-23.
double relative_tolerance(Unary op, double x) {
  switch (op) {
    case Unary::gelu:
      return 3e-7 + x * x / 2 * 1.5e-7;
    case Unary::gelu_tanh:
      return 3e-7 + std::fabs(1.6 * (x + 0.044715 * x * x * x)) * 3e-7;
    case Unary::gelu_quick:
      return 3e-7 + std::fabs(1.702 * x) * 1.5e-7;
    default:
      return 3e-7;
  }
}

TEST(Unary, Fp32IsWithinThreeRoundings) {
  on_every_isa([] {
    for (const Op& o : all_ops()) {
      const i64 n = 20011;
      std::vector<float> x(static_cast<std::size_t>(n)), y(x);
      for (i64 i = 0; i < n; ++i)
        x[static_cast<std::size_t>(i)] =
            static_cast<float>(o.low + (o.high - o.low) * static_cast<double>(i) / (n - 1));
      unary(o.op, x.data(), y.data(), n);
      for (i64 i = 0; i < n; ++i) {
        const double want = o.f(x[i]);
        ASSERT_LE(std::fabs(y[i] - want), relative_tolerance(o.op, x[i]) * std::fabs(want) + 1e-37)
            << o.name << "(" << x[i] << ") = " << y[i] << ", want " << want;
      }
      std::vector<float> z = x;  // in place
      unary(o.op, z.data(), z.data(), n);
      EXPECT_TRUE(same_bits(y, z)) << o.name;
    }
  });
}

TEST(Unary, SmallArgumentsKeepTheirRelativeError) {
  on_every_isa([] {
    for (Unary op : {Unary::tanh, Unary::erf})
      for (float v : {1e-30f, 1e-8f, 1e-4f, 0.01f, -0.3f, 0.624f, 0.626f, 0.949f, 0.951f}) {
        float y;
        unary(op, &v, &y, 1);
        const double want =
            op == Unary::tanh ? std::tanh(static_cast<double>(v)) : std::erf(static_cast<double>(v));
        EXPECT_LE(std::fabs(y - want), 3e-7 * std::fabs(want)) << v;
      }
  });
}

template <class T>
T at(Unary op, T x) {
  // In full vectors and in the remainder after them, which must agree.
  std::vector<T> in(37, x), out(37);
  unary(op, in.data(), out.data(), 37);
  for (T v : out) EXPECT_TRUE(v == out[0] || (std::isnan(v) && std::isnan(out[0])));
  return out[20];
}

TEST(Unary, ExtremeArgumentsGiveTheLimits) {
  on_every_isa([] {
    for (const Op& o : all_ops()) {
      if (o.op == Unary::step) continue;  // a comparison
      EXPECT_TRUE(std::isnan(at(o.op, kNan))) << o.name;
      EXPECT_TRUE(std::isnan(at(o.op, static_cast<double>(kNan)))) << o.name;
    }
    EXPECT_EQ(at(Unary::exp, -kInf), 0);
    EXPECT_EQ(at(Unary::exp, kInf), kInf);
    EXPECT_EQ(at(Unary::exp, 89.0f), kInf);
    EXPECT_EQ(at(Unary::exp, 0.0f), 1);
    EXPECT_EQ(at(Unary::exp, -200.0f), 0);
    EXPECT_NEAR(at(Unary::exp, -100.0f), std::exp(-100.0), 1.5e-45);  // subnormal: to its last bit
    EXPECT_EQ(at(Unary::log, 0.0f), -kInf);
    EXPECT_EQ(at(Unary::log, kInf), kInf);
    EXPECT_TRUE(std::isnan(at(Unary::log, -1.0f)));
    EXPECT_NEAR(at(Unary::log, 1e-40f), std::log(1e-40), 1e-5 * 92);
    EXPECT_EQ(at(Unary::log, 1.0f), 0);
    EXPECT_EQ(at(Unary::tanh, kInf), 1);
    EXPECT_EQ(at(Unary::tanh, -kInf), -1);
    EXPECT_EQ(at(Unary::erf, kInf), 1);
    EXPECT_EQ(at(Unary::erf, -kInf), -1);
    EXPECT_EQ(at(Unary::sigmoid, kInf), 1);
    EXPECT_EQ(at(Unary::sigmoid, -kInf), 0);
    EXPECT_EQ(at(Unary::softplus, kInf), kInf);
    EXPECT_EQ(at(Unary::softplus, -kInf), 0);
    for (Unary op : {Unary::gelu, Unary::gelu_tanh, Unary::gelu_quick, Unary::silu}) {
      EXPECT_EQ(at(op, kInf), kInf);
      EXPECT_EQ(at(op, -kInf), 0);
      EXPECT_EQ(at(op, 1e30f), 1e30f);
    }
  });
}

TEST(UnaryBackward, IsTheNumericDerivative) {
  for (const Op& o : all_ops()) {
    const double low = std::max(o.low, o.op == Unary::log || o.op == Unary::sqrt ? 0.3 : -4.0);
    const i64 n = 101;  // with an even number a point would be near 0, where abs and relu have kinks
    std::vector<double> x(static_cast<std::size_t>(n)), g = random_array<double>(n, 1), dx(x), up(x), down(x);
    for (i64 i = 0; i < n; ++i)
      x[static_cast<std::size_t>(i)] = low + 0.0171 + (4 - low) * static_cast<double>(i) / n;
    const double h = 1e-6;
    std::vector<double> xu = x, xd = x;
    for (double& v : xu) v += h;
    for (double& v : xd) v -= h;
    unary(o.op, xu.data(), up.data(), n);
    unary(o.op, xd.data(), down.data(), n);
    std::vector<double> want(x);
    for (i64 i = 0; i < n; ++i) want[i] = g[i] * (up[i] - down[i]) / (2 * h);
    unary_backward(o.op, x.data(), g.data(), dx.data(), n);
    // Central differences: h^2 f'''/6 ~ 1e-11, rounding eps f / h ~ 2e-10 * |f| (exp(4) = 55; 1/x at 0.1).
    expect_close(dx, want, 2e-7, o.name);
    // fp32 agrees with fp64.
    on_every_isa([&] {
      std::vector<float> xf(x.begin(), x.end()), gf(g.begin(), g.end()), df(xf);
      unary_backward(o.op, xf.data(), gf.data(), df.data(), n);
      expect_close(df, dx, 1e-5, o.name);
    });
  }
}

TEST(UnaryBackward, TailsAreFinite) {
  for (Unary op :
       {Unary::gelu, Unary::gelu_tanh, Unary::gelu_quick, Unary::silu, Unary::softplus, Unary::sigmoid})
    for (float v : {-kInf, -1e20f, -300.0f, 300.0f, 1e20f, kInf}) {
      std::vector<float> x(19, v), g(19, 1.0f), dx(19);
      unary_backward(op, x.data(), g.data(), dx.data(), 19);
      EXPECT_EQ(dx[7], v > 0 && op != Unary::sigmoid ? 1.0f : 0.0f) << static_cast<int>(op) << " at " << v;
    }
}

TEST(Unary, SameBitsOnAnyThreads) {
  const i64 n = 100003;
  const auto x = random_array<float>(n, 1);
  for (Unary op : {Unary::gelu, Unary::exp, Unary::tanh})
    expect_same_on_any_threads([&] {
      std::vector<float> y(x.size());
      unary(op, x.data(), y.data(), n);
      return y;
    });
}

TEST(Unary, EmptyRangesAreAllowed) {
  unary<float>(Unary::exp, nullptr, nullptr, 0);
  unary_backward<float>(Unary::exp, nullptr, nullptr, nullptr, 0);
}

}  // namespace
}  // namespace redco::kernels

#include "ops/conv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_text.h"
#include "support/op_cases.h"

namespace redco {
namespace {

using namespace redco::testing;
using Xs = std::vector<Tensor>;

OpFunction convolve(const Conv2dOptions& o = {}) {
  return [o](const Xs& x) { return conv2d(x[0], x[1], x.size() > 2 ? x[2] : Tensor(), o); };
}
Input hidden(const Shape& shape) {
  Input in{shape};
  in.hidden = 1;
  return in;
}
// Second differences of all elements are expensive, so a case tries fewer combinations.
OpCase quick(OpCase c) {
  c.combinations = 60;
  return c;
}

// The definition of a convolution, one multiplication at a time.
std::vector<double> by_definition(const std::vector<double>& x, const Shape& xs, const std::vector<double>& w,
                                  const Shape& ws, const Conv2dOptions& o) {
  const i64 B = xs[0], C = xs[1], H = xs[2], W = xs[3], O = ws[0], kh = ws[2], kw = ws[3];
  const i64 h = (H + 2 * o.padding[0] - kh) / o.stride[0] + 1,
            v = (W + 2 * o.padding[1] - kw) / o.stride[1] + 1;
  std::vector<double> y;
  for (i64 b = 0; b < B; ++b)
    for (i64 out = 0; out < O; ++out)
      for (i64 i = 0; i < h; ++i)
        for (i64 j = 0; j < v; ++j) {
          double s = 0;
          for (i64 c = 0; c < C; ++c)
            for (i64 p = 0; p < kh; ++p)
              for (i64 q = 0; q < kw; ++q) {
                const i64 r = i * o.stride[0] + p - o.padding[0], t = j * o.stride[1] + q - o.padding[1];
                if (r >= 0 && r < H && t >= 0 && t < W)
                  s += x[((b * C + c) * H + r) * W + t] * w[((out * C + c) * kh + p) * kw + q];
              }
          y.push_back(s);
        }
  return y;
}

// Shapes on both sides of every block size of the kernels: outputs in eights and twos, positions in vectors,
// kernel elements in sixes and threes, images in eights. f32: sums of up to 300 products of numbers below 1,
// rounded each time: at worst 300 * 6e-8 of sums near 10; f64 the same with 1e-16.
TEST(Conv2d, EqualsTheDefinition) {
  struct Case {
    Shape x, w;
    Conv2dOptions o;
  };
  const std::vector<Case> cases = {
      {{1, 1, 1, 1}, {1, 1, 1, 1}, {}},
      {{2, 1, 28, 28}, {11, 1, 3, 3}, {{1, 1}, {1, 1}}},
      {{9, 5, 14, 14}, {18, 5, 3, 3}, {{1, 1}, {1, 1}}},
      {{2, 3, 9, 5}, {4, 3, 5, 2}, {{1, 1}, {2, 0}}},
      {{3, 2, 8, 11}, {5, 2, 3, 4}, {{2, 3}, {1, 2}}},
      {{1, 2, 7, 7}, {3, 2, 7, 7}, {}},
      {{2, 2, 3, 3}, {3, 2, 1, 1}, {{1, 1}, {2, 1}}},  // more padding than kernel
      {{17, 1, 4, 4}, {1, 1, 2, 2}, {{3, 1}, {0, 0}}},
      {{133, 1, 3, 3}, {2, 1, 2, 2}, {}},    // pieces of nine images
      {{2, 1, 300, 400}, {5, 1, 1, 2}, {}},  // one image at a time
  };
  on_one_rank([&](Context&) {
    Random random(5);
    for (const Case& c : cases) {
      SCOPED_TRACE(fmt::format("{} by {}", to_string(c.x), to_string(c.w)));
      const auto x = random.values(numel(c.x)), w = random.values(numel(c.w));
      const auto want = by_definition(x, c.x, w, c.w, c.o);
      const auto in = [](const Shape& s, const std::vector<double>& v, DType t) {
        return place(s, v, {}, t);
      };
      for (const DType t : {DType::f32, DType::f64}) {
        const double tolerance = t == DType::f64 ? 1e-13 : 2e-6;
        const Tensor a = in(c.x, x, t), b = in(c.w, w, t);
        const Tensor y = conv2d(a, b, {}, c.o);
        EXPECT_LT(distance(to_values(y), want), tolerance);
        // Both gradients are transposes of the same linear maps: <g, x * w> = <dx, x> = <dw, w>.
        const auto g = random.values(y.numel());
        const Tensor gt = in(y.shape(), g, t);
        const auto dot = [](const std::vector<double>& p, const std::vector<double>& q) {
          double s = 0;
          for (size_t i = 0; i < p.size(); ++i) s += p[i] * q[i];
          return s;
        };
        const double inner = dot(g, want), size = std::sqrt(dot(g, g) * dot(want, want)) + 1;
        const Tensor dx = conv2d_input_gradient(gt, b, c.x[2], c.x[3], c.o);
        const Tensor dw = conv2d_weight_gradient(gt, a, c.w[2], c.w[3], c.o);
        EXPECT_EQ(dx.shape(), c.x);
        EXPECT_EQ(dw.shape(), c.w);
        EXPECT_NEAR(dot(to_values(dx), x), inner, tolerance * size);
        EXPECT_NEAR(dot(to_values(dw), w), inner, tolerance * size);
      }
    }
  });
}

TEST(Conv2d, DerivativesAndPlacements) {
  OpCase c{"conv", {{{2, 2, 3, 3}}, {{3, 2, 2, 2}}, {{3}}}, convolve({{1, 1}, {1, 0}})};
  c.inputs[0].units = c.inputs[1].units = {1, 2};
  check_op(c);
  check_op(quick({"strided", {{{2, 2, 5, 4}}, {{2, 2, 3, 2}}}, convolve({{2, 1}, {1, 1}})}));
  check_op(quick({"empty", {{{0, 2, 3, 3}}, {{2, 2, 2, 2}}, {{2}}}, convolve()}));
}

TEST(Conv2d, AWeightPerTaskPassesCheckOp) {
  const Conv2dOptions same{{1, 1}, {1, 1}};
  check_op(
      quick({"tasks", {hidden({2, 2, 2, 2, 2}), hidden({2, 3, 2, 3, 3}), hidden({2, 3})}, convolve(same)}));
  check_op(quick({"shared weight", {hidden({2, 2, 2, 2, 2}), {{3, 2, 1, 2}}, {{3}}}, convolve()}));
  check_op(quick({"own bias", {hidden({2, 1, 2, 2, 2}), {{3, 2, 1, 2}}, hidden({2, 3})}, convolve()}));
  check_op(quick({"shared images", {{{2, 2, 2, 2}}, hidden({2, 2, 2, 1, 2})}, convolve()}));
  check_op(quick({"leading dims", {{{2, 1, 2, 1, 2, 2}}, {{3, 1, 1, 1, 1}}}, convolve()}));
}

TEST(Conv2d, ItsTransposesPassCheckOp) {
  const Conv2dOptions o{{1, 2}, {1, 0}};
  check_op(quick({"input gradient", {{{2, 2, 3, 2}}, {{2, 2, 2, 2}}}, [o](const Xs& x) {
                    return conv2d_input_gradient(x[0], x[1], 2, 4, o);
                  }}));
  check_op(quick({"weight gradient", {hidden({2, 2, 2, 3, 2}), hidden({2, 2, 1, 2, 4})}, [o](const Xs& x) {
                    return conv2d_weight_gradient(x[0], x[1], 2, 2, o);
                  }}));
}

TEST(Pool2d, DerivativesAndPlacements) {
  for (const auto& pool : {avg_pool2d, max_pool2d}) {
    check_op(quick({"pairs", {{{2, 2, 4, 5}}}, [&](const Xs& x) { return pool(x[0], {}); }}));
    check_op(quick({"windows", {hidden({2, 5, 4})}, [&](const Xs& x) {
                      return pool(x[0], {{3, 2}, {2, 1}, {1, 1}});
                    }}));
  }
  Input away{{2, 2, 4, 5}};  // numbers away from 0, where relu has no derivative
  const auto from_zero = [](const Tensor& x) { return x + scale(unary(Unary::sign, x), 0.01); };
  check_op(quick({"relu, pairs", {away}, [&](const Xs& x) { return relu_avg_pool2d(from_zero(x[0])); }}));
  check_op(quick({"relu, windows", {away}, [&](const Xs& x) {
                    return relu_avg_pool2d(from_zero(x[0]), {{3, 2}, {2, 1}, {1, 1}});
                  }}));
  check_op(quick({"none", {{{2, 0, 2, 2}}}, [](const Xs& x) { return max_pool2d(x[0]); }}));
}

TEST(Upsample, DerivativesAndPlacements) {
  OpCase c = quick({"2 x 3", {{{2, 1, 2, 3}}}, [](const Xs& x) { return square(upsample(x[0], 2, 3)); }});
  c.inputs[0].units = {1, 2};
  check_op(c);
  check_op(
      quick({"planes of a task", {hidden({2, 2, 2})}, [](const Xs& x) { return upsample(x[0], 1, 2); }}));
  on_one_rank([](Context&) {
    const Tensor x = from_values({1, 2, 2}, std::vector<double>{1, 2, 3, 4});
    EXPECT_THAT(to_values(upsample(x, 2, 3)), ::testing::ElementsAre(1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2, 3, 3,
                                                                     3, 4, 4, 4, 3, 3, 3, 4, 4, 4));
    EXPECT_EQ(upsample(x, 2, 3).shape(), (Shape{1, 4, 6}));
    EXPECT_THROW(upsample(x, 0, 2), BugError);
  });
}

// Values of torch.nn.functional.
TEST(Pool2d, ValuesAreThoseOfTorch) {
  on_one_rank([](Context&) {
    const Tensor x = from_values({1, 3, 4}, std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 9, 9, NAN, 12});
    EXPECT_THAT(to_values(avg_pool2d(x)), ::testing::ElementsAre(3.5, 5.5));
    const Pool2dOptions padded{{2, 2}, {2, 2}, {1, 1}};
    EXPECT_THAT(to_values(avg_pool2d(x, padded)),
                ::testing::ElementsAre(0.25, 1.25, 1, 3.5, ::testing::IsNan(), 5));
    EXPECT_THAT(to_values(max_pool2d(x, padded)), ::testing::ElementsAre(1, 3, 4, 9, ::testing::IsNan(), 12));
    // Rows of 1, 4, 7, 8 and 21 pairs: vectors that end with the row, overlap, or are not full.
    Random random(1);
    for (const i64 width : {2, 9, 14, 17, 43}) {
      const Tensor wide = place({2, 5, width}, random.values(10 * width), {}, DType::f32).watched();
      const Tensor y = relu_avg_pool2d(wide), slow = avg_pool2d(relu(wide));
      EXPECT_EQ(y.shape(), (Shape{2, 2, width / 2}));
      EXPECT_LT(distance(to_values(y), to_values(slow)), 1e-6);
      const auto dx = [&](const Tensor& out) { return to_values(grad(sum_all(square(out)), {wide})[0]); };
      EXPECT_LT(distance(dx(y), dx(slow)), 1e-6);
    }
    // The first of several equal pixels gets the gradient.
    const Tensor same = full({1, 2, 2}, 3).watched();
    EXPECT_THAT(to_values(grad(sum_all(max_pool2d(same)), {same})[0]), ::testing::ElementsAre(1, 0, 0, 0));
  });
}

TEST(Conv2d, MisuseIsAnError) {
  on_one_rank([](Context&) {
    EXPECT_THROW(conv2d(zeros({1, 2, 3, 3}), zeros({1, 1, 3, 3})), BugError);
    EXPECT_THROW(conv2d(zeros({2, 3, 3}), zeros({1, 2, 3, 3})), BugError);
    EXPECT_THROW(conv2d(zeros({1, 1, 3, 3}), zeros({1, 1, 3, 3}), zeros({2})), BugError);
    EXPECT_THROW(conv2d(zeros({1, 1, 3, 3}), zeros({1, 1, 3, 3}), {}, {{0, 1}, {0, 0}}), BugError);
    EXPECT_THAT(error_text<BugError>([] {
                  conv2d(zeros({1, 1, 3, 4}), zeros({1, 1, 6, 2}), {}, {{1, 1}, {1, 0}});
                }),
                ::testing::HasSubstr("is larger than the padded images"));
    EXPECT_EQ(conv2d(zeros({1, 1, 3, 4}), zeros({1, 1, 5, 2}), {}, {{1, 1}, {1, 0}}).shape(),
              (Shape{1, 1, 1, 3}));
    EXPECT_THROW(avg_pool2d(zeros({1, 1, 1})), BugError);
    EXPECT_THROW(max_pool2d(zeros({4, 4}), {{2, 2}, {2, 2}, {2, 2}}), BugError);
  });
}

}  // namespace
}  // namespace redco

// Activations in bf16: every op gives what it gives in fp32 for the same values, rounded.
#include <gtest/gtest.h>

#include "ops/attention.h"
#include "ops/conv.h"
#include "ops/cross_entropy.h"
#include "ops/linear.h"
#include "ops/norm.h"
#include "ops/recurrence.h"
#include "ops/scan.h"
#include "ops/select.h"
#include "ops/shape.h"
#include "ops/softmax.h"
#include "support/op_cases.h"

namespace redco {
namespace {

using namespace redco::testing;
using Xs = std::vector<Tensor>;

struct Bf16Case {
  std::string name;
  std::vector<Shape> shapes;
  std::function<Tensor(const Xs&)> f;
  std::vector<bool> fp32 = {};  // inputs that stay fp32: parameters
  DType result = DType::bf16;
  double tolerance = 1.0 / 128;  // of the largest element: results and cotangents are rounded
};

struct Outcome {
  std::vector<double> value;
  std::vector<std::vector<double>> gradients;
  DType type;
  std::vector<DType> gradient_types;
};

// The op on values that bf16 holds exactly, computed in this type.
Outcome outcome(const Bf16Case& c, ComputeDType compute, bool create_graph = false) {
  Context& context = Context::current();
  const Restore<ComputeDType> restored(context.compute_dtype, compute);
  Random random(5);
  Xs x;
  for (size_t i = 0; i < c.shapes.size(); ++i) {
    const Tensor wide = cast(place(c.shapes[i], random.values(numel(c.shapes[i])), {}), DType::f32);
    const bool parameter = i < c.fp32.size() && c.fp32[i];
    const Tensor stored = cast(wide, DType::bf16);
    const bool keeps = parameter || compute == ComputeDType::fp32;
    x.push_back((keeps ? cast(stored, DType::f32) : stored).watched());
  }
  const Tensor y = c.f(x);
  Outcome out{to_values(y), {}, y.dtype(), {}};
  const Tensor g = cast(cast(cast(place(y.shape(), random.values(y.numel()), {}), DType::f32), DType::bf16),
                        y.dtype() == DType::bf16 ? DType::bf16 : DType::f32);
  for (const Tensor& t : vjp({y}, {g}, x, {.create_graph = create_graph})) {
    out.gradients.push_back(t.defined() ? to_values(t) : std::vector<double>());
    out.gradient_types.push_back(t.defined() ? t.dtype() : DType::f64);
  }
  return out;
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  double largest = 0;
  for (double v : b) largest = std::max(largest, std::fabs(v));
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_LE(std::fabs(a[i] - b[i]), tolerance * largest) << what << " [" << i << "] " << b[i];
}

std::vector<Bf16Case> bf16_cases() {
  const auto positions = [](const Tensor& x) {
    std::vector<i32> ids;
    for (i64 b = 0; b < x.size(0); ++b)
      for (i64 t = 0; t < x.size(1); ++t) ids.push_back(static_cast<i32>(t + b));
    return from_ids({x.size(0), x.size(1)}, ids, {});
  };
  const RopeOptions rope_options{.inv_freq =
                                     std::make_shared<const std::vector<float>>(std::vector<float>{1, 0.1f})};
  const auto labels = [] { return from_ids({5}, std::vector<i32>{0, 3, -1, 2, 1}, {}); };
  AttentionOptions causal;
  causal.causal = true;
  causal.scale = 0.5;
  const Shape heads = {2, 9, 4, 8}, shared = {2, 9, 2, 8};
  const std::vector<bool> weights = {false, true, true};
  return {
      {"gelu", {{7, 300}}, [](const Xs& x) { return gelu(x[0]); }},
      {"tanh", {{7, 300}}, [](const Xs& x) { return tanh(x[0]); }},
      {"mul", {{7, 300}, {7, 300}}, [](const Xs& x) { return x[0] * x[1]; }},
      {"gated", {{7, 300}, {7, 300}}, [](const Xs& x) { return gated(Unary::silu, x[0], x[1]); }},
      {"add", {{7, 300}, {7, 300}}, [](const Xs& x) { return x[0] + x[1]; }},
      {"add to fp32",
       {{7, 300}, {7, 300}},
       [](const Xs& x) { return x[0] + x[1]; },
       {true, false},
       DType::f32},
      {"broadcast", {{7, 30}, {30}}, [](const Xs& x) { return x[0] * x[1]; }, {}, DType::f32},
      {"scale", {{7, 300}}, [](const Xs& x) { return scale(x[0], 0.3); }},
      {"sum", {{7, 30}}, [](const Xs& x) { return sum(x[0], {0}); }, {}, DType::f32},
      {"softmax", {{7, 30}}, [](const Xs& x) { return softmax(x[0]); }, {}, DType::f32},
      {"log_sum_exp", {{7, 30}}, [](const Xs& x) { return log_sum_exp(x[0]); }, {}, DType::f32},
      {"clamp", {{7, 30}}, [](const Xs& x) { return clamp(x[0], -0.5, 0.5); }, {}, DType::f32},
      {"where",
       {{5, 30}, {5, 30}},
       [](const Xs& x) {
         return where(from_ids({5, 1}, std::vector<i32>{0, 1, 1, 0, 1}), x[0], x[1]);
       },
       {},
       DType::f32},
      {"cumsum", {{4, 20}}, [](const Xs& x) { return cumsum(x[0], 1); }, {}, DType::f32},
      {"group_norm",
       {{2, 6, 20}, {6}, {6}},
       [](const Xs& x) { return group_norm(x[0], 2, x[1], x[2], 1e-5); },
       weights,
       DType::f32},
      {"upsample", {{2, 3, 4}}, [](const Xs& x) { return upsample(x[0], 2, 2); }},
      {"linear_recurrence",
       {{2, 9, 4}, {2, 9, 1, 3}, {2, 9, 1, 3}, {2, 9, 4, 5}},
       [](const Xs& x) {
         return linear_recurrence({scale(abs(x[0]), -1), x[1], x[2], x[3]}, 4).y;
       },
       {true, false, false, false},
       DType::f32},
      {"causal_conv1d",
       {{2, 9, 6}, {6, 4}, {6}},
       [](const Xs& x) { return causal_conv1d(x[0], x[1], x[2]); },
       weights,
       DType::f32},
      {"permute",
       {{4, 3, 5}},
       [](const Xs& x) {
         return permute(x[0], {2, 0, 1});
       }},
      {"narrow", {{4, 6}}, [](const Xs& x) { return narrow(x[0], 1, 2, 3); }},
      {"concat",
       {{4, 6}, {4, 2}},
       [](const Xs& x) {
         return concat({x[0], x[1]}, 1);
       }},
      {"reshape",
       {{4, 6}},
       [](const Xs& x) {
         return reshape(x[0], {3, 8});
       }},
      {"layer_norm",
       {{9, 70}, {70}, {70}},
       [](const Xs& x) { return layer_norm(x[0], x[1], x[2], 1e-5); },
       weights},
      {"rms_norm", {{9, 70}, {70}}, [](const Xs& x) { return rms_norm(x[0], x[1], 1e-5); }, weights},
      {"linear", {{20, 70}, {33, 70}, {33}}, [](const Xs& x) { return linear(x[0], x[1], x[2]); }, weights},
      {"linear of a few rows",
       {{3, 70}, {33, 70}, {33}},
       [](const Xs& x) { return linear(x[0], x[1], x[2]); },
       weights},
      {"rope", {heads}, [=](const Xs& x) { return rope(x[0], positions(x[0]), rope_options); }},
      {"attention", {heads, heads, heads}, [=](const Xs& x) { return attention(x[0], x[1], x[2], causal); }},
      {"attention with shared keys",
       {heads, shared, shared},
       [=](const Xs& x) { return attention(x[0], x[1], x[2], causal); }},
      {"attention with a bias",
       {heads, heads, heads, {1, 4, 9, 9}},
       [=](const Xs& x) { return attention(x[0], x[1], x[2], {}, {}, x[3]); },
       {false, false, false, true}},
      {"attention of one query",
       {{2, 1, 4, 8}, shared, shared},
       [](const Xs& x) { return attention(x[0], x[1], x[2], {}); },
       {},
       DType::f32},
      {"cross_entropy",
       {{5, 40}},
       [=](const Xs& x) { return cross_entropy(x[0], labels()); },
       {},
       DType::f32},
  };
}

TEST(Bf16, OpsGiveTheRoundedResultsOfFp32) {
  on_one_rank([](Context&) {
    for (const Bf16Case& c : bf16_cases()) {
      SCOPED_TRACE(c.name);
      const Outcome want = outcome(c, ComputeDType::fp32), got = outcome(c, ComputeDType::bf16);
      expect_near(got.value, want.value, c.tolerance, c.name);
      // Composed of simpler ops, which give fp32.
      const Outcome again = outcome(c, ComputeDType::bf16, true);
      for (size_t i = 0; i < want.gradients.size(); ++i)
        expect_near(again.gradients[i], want.gradients[i], 2 * c.tolerance,
                    c.name + ", differentiable gradient");
      if (!test_queue()->kernels().layer_norm.run) continue;  // types are those of fused kernels
      EXPECT_EQ(got.type, c.result);
      EXPECT_EQ(want.type, DType::f32);
      for (size_t i = 0; i < want.gradients.size(); ++i) {
        expect_near(got.gradients[i], want.gradients[i], c.tolerance,
                    c.name + ", gradient " + std::to_string(i));
        if (i < c.fp32.size() && c.fp32[i] && c.name != "add to fp32")
          EXPECT_EQ(got.gradient_types[i], DType::f32);
      }
    }
  });
}

}  // namespace
}  // namespace redco

// Scratch memory of kernels is allocated from the arena, so that a plan counts it.
#include <gtest/gtest.h>

#include "autograd/grad.h"
#include "kernels/threads.h"
#include "ops/attention.h"
#include "ops/conv.h"
#include "ops/norm.h"
#include "ops/reduce.h"
#include "support/ranks.h"

namespace redco {
namespace {

using namespace redco::testing;

struct Case {
  const char* name;
  std::vector<Shape> inputs;
  size_t constants;  // number of leading inputs without a gradient
  std::function<Tensor(const std::vector<Tensor>&)> f;
  bool backward;
  std::vector<i64> elements;  // of the op's outputs and its workspace, as fp32 numbers
};

// Peak of the bytes that the op uses in addition to those in use before.
i64 peak_of(Context& c, const Case& k) {
  std::vector<Tensor> in, watched;
  for (const Shape& s : k.inputs) {
    in.push_back(full(s, 0.5));
    if (in.size() > k.constants) watched.push_back(in.back() = in.back().watched());
  }
  if (!k.backward) {
    const i64 before = c.arena().in_use();
    k.f(in);
    return c.arena().peak_in_use() - before;
  }
  const Tensor y = k.f(in), g = ones_like(y);
  const i64 before = c.arena().in_use();
  vjp({y}, {g}, watched);
  return c.arena().peak_in_use() - before;
}

TEST(Workspace, IsAllocatedInTheArenaOfRunAndPlan) {
  const auto attend = [](const std::vector<Tensor>& x) { return attention(x[0], x[1], x[2], {}); };
  constexpr i64 B = 2, T = 96, H = 8, K = 2, D = 16;
  const std::vector<Case> cases = {
      {"attention_backward",
       {{B, T, H, D}, {B, T, K, D}, {B, T, K, D}},
       0,
       attend,
       true,
       {B * T * H * D, B * T * K * D, B * T * K * D, 2 * B * H * T * D + 2 * 64 * 128}},
      {"attention",
       {{B, T, H, D}, {B, T, K, D}, {B, T, K, D}},
       0,
       attend,
       false,
       {B * T * H * D, B * H * T, 64 * 128}},
      {"attention of one query",
       {{B, 1, H, D}, {B, 2500, K, D}, {B, 2500, K, D}},
       0,
       attend,
       false,
       {B * H * D, B * H, B * H * 3 * (D + 2)}},
      {"sum",
       {{2, 100000}},
       0,
       [](const std::vector<Tensor>& x) { return sum(x[0], {0}); },
       false,
       {100000, 2 * 100000}},
      {"layer_norm_backward",
       {{512, 64}, {64}, {64}},
       0,
       [](const std::vector<Tensor>& x) { return layer_norm(x[0], x[1], x[2], 1e-5); },
       true,
       {512 * 64, 64, 64, 2 * 64 * 64}},
      {"conv2d_weight_gradient",
       {{32, 3, 8, 8}, {4, 3, 3, 3}},
       1,
       [](const std::vector<Tensor>& x) { return conv2d(x[0], x[1]); },
       true,
       {4 * 27, 4 * 4 * 27}},
      {"conv2d_input_gradient",
       {{16, 16, 3, 3}, {1, 16, 4, 4}},
       1,
       [](const std::vector<Tensor>& x) { return conv2d(x[1], x[0]); },
       true,
       {16 * 4 * 4, 16 * 16 * 9}},
  };
  for (const Case& k : cases) {
    SCOPED_TRACE(k.name);
    i64 least = 0, run = 0, plan = 0;
    for (const i64 n : k.elements) least += Arena::rounded(n * 4);
    on_one_rank([&](Context& c) { run = peak_of(c, k); });
    EXPECT_GE(run, least);
    kernels::set_threads(1);  // as that rank: workspaces depend on it
    const auto meta = Context::meta({1, 1}, 0);
    Context::Use use(*meta);
    plan = peak_of(*meta, k);
    EXPECT_EQ(plan, run);
  }
}

}  // namespace
}  // namespace redco

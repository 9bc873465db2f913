// Whole models with random placements of every parameter: loss and gradients equal those on one rank, and the
// planned run equals the real run.
#include <gtest/gtest.h>

#include "autograd/grad.h"
#include "support/random_model.h"

namespace redco {
namespace {

using namespace redco::testing;

struct Outcome {
  std::vector<double> loss;
  std::vector<std::vector<double>> first, second;
};

// order 2: also the gradient of the sum of <g_i, g_i> over all parameters.
Outcome run_model(const RandomModel& m, const std::vector<Layout>& layouts, const Layout& batch, int order) {
  std::vector<Tensor> p;
  for (size_t i = 0; i < layouts.size(); ++i)
    p.push_back(place(m.shapes()[i], m.values(i), layouts[i]).watched());
  Outcome r;
  const Tensor loss = m.loss(p, batch);
  r.loss = to_values(loss);
  const auto g = grad(loss, p, {.create_graph = order > 1});
  for (const Tensor& t : g) r.first.push_back(to_values(t));
  if (order < 2) return r;
  Tensor norm;
  for (const Tensor& t : g) norm = norm.defined() ? norm + sum_all(square(t)) : sum_all(square(t));
  for (const Tensor& t : grad(norm, p)) r.second.push_back(to_values(t));
  return r;
}

std::vector<Layout> random_layouts(const RandomModel& m, u64 seed, bool partial, bool on_dp) {
  Random random(seed);
  auto any = [&](size_t i) {
    const i64 k = random.below(partial ? 6 : 5);
    const int dim = static_cast<int>(random.below(static_cast<i64>(m.shapes()[i].size())));
    if (k == 0) return Placement::replicated();
    if (k == 5) return Placement::partial();
    return Placement::sharded(dim, k == 1 ? m.unit(i) : 1 + random.below(3));
  };
  std::vector<Layout> out(m.shapes().size());
  for (size_t i = 0; i < out.size(); ++i) {
    out[i][Axis::mp] = any(i);
    if (on_dp) out[i][Axis::dp] = any(i);
  }
  return out;
}

// Tolerance: sums of a few hundred terms in another order. Losses are about 30, gradients about 1, second
// derivatives about 100 (distance() is relative to the largest).
TEST(RandomModels, LossAndGradientsEqualThoseOnOneRank) {
  const Mesh kMeshes[] = {{1, 2}, {2, 1}, {1, 3}, {2, 2}, {1, 4}};
  for (u64 seed = 0; seed < 25; ++seed) {
    const RandomModel model(seed);
    Outcome expected;
    on_one_rank(
        [&](Context&) { expected = run_model(model, std::vector<Layout>(model.shapes().size()), {}, 2); });
    for (const Mesh& mesh : kMeshes)
      on_mesh(mesh, [&](Context& c) {
        for (u64 rules = 0; rules < 3; ++rules) {
          const auto layouts = random_layouts(model, seed * 31 + rules, rules == 1, rules == 2);
          const Layout batch = mesh.dp() > 1 ? batch_layout() : Layout{};
          const Outcome r = run_model(model, layouts, batch, rules == 0 ? 2 : 1);
          std::string what = fmt::format("model {} rules {} mesh {}x{} rank {}", seed, rules, mesh.dp(),
                                         mesh.mp(), c.rank());
          ASSERT_LT(distance(r.loss, expected.loss), 1e-13) << what;
          for (size_t i = 0; i < layouts.size(); ++i) {
            ASSERT_LT(distance(r.first[i], expected.first[i]), 1e-12)
                << what << ": " << model.name(i) << " " << to_string(layouts[i], Context::current().mesh());
            if (rules == 0) {
              ASSERT_LT(distance(r.second[i], expected.second[i]), 1e-11)
                  << what << ": " << model.name(i) << " " << to_string(layouts[i], Context::current().mesh());
            }
          }
        }
      });
  }
}

// A planned (meta) rank fills the same ledger, line by line, and has the same high-water mark.
TEST(RandomModels, PlanAndRunHaveEqualLedgers) {
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{1, 2}, Mesh{2, 2}, Mesh{3, 1}})
    on_mesh(mesh, [&](Context& c) {
      for (u64 seed = 0; seed < 15; ++seed) {
        const RandomModel model(seed);
        const auto layouts = random_layouts(model, seed + 7, false, seed % 3 == 0);
        auto step = [&](Context& context) {
          std::vector<Tensor> p;
          for (size_t i = 0; i < layouts.size(); ++i)
            p.push_back(place(model.shapes()[i], model.values(i), layouts[i]).watched());
          const Tensor loss = model.loss(p, mesh.dp() > 1 ? batch_layout() : Layout{});
          for (const Tensor& g : grad(loss, p, {.create_graph = seed % 2 == 1})) to_replicated(g);
          return context.ledger()->lines();
        };
        const i64 before = c.arena().in_use();
        ASSERT_EQ(before, 0);
        c.keep_ledger();
        const auto real = step(c);
        const auto planned_context = Context::meta(mesh, c.rank());
        std::vector<LedgerLine> planned;
        {
          Context::Use use(*planned_context);
          planned = step(*planned_context);
        }
        ASSERT_EQ(real.size(), planned.size());
        for (size_t i = 0; i < real.size(); ++i)
          EXPECT_TRUE(real[i] == planned[i])
              << real[i].what << " in " << real[i].where << ": " << real[i].count << " " << real[i].flops
              << " " << real[i].bytes << ", planned " << planned[i].what << " " << planned[i].count << " "
              << planned[i].flops << " " << planned[i].bytes;
        // The peak of the real context covers all models so far.
        EXPECT_GE(c.arena().peak_in_use(), planned_context->arena().peak_in_use());
        for (Axis a : Context::current().mesh().axes())
          for (Collective k : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                               Collective::all_to_all}) {
            EXPECT_EQ(planned_context->group(a).counted(k).calls, c.group(a).counted(k).calls) << name_of(k);
            EXPECT_EQ(planned_context->group(a).counted(k).bytes, c.group(a).counted(k).bytes) << name_of(k);
          }
        for (Axis a : Context::current().mesh().axes()) c.group(a).reset_counts();
      }
    });
}

TEST(RandomModels, PlanAndRunHaveEqualMemoryPeaks) {
  for (u64 seed = 0; seed < 8; ++seed)
    on_mesh({1, 2}, [&](Context& c) {
      const RandomModel model(seed);
      const auto layouts = random_layouts(model, seed, false, false);
      auto step = [&] { run_model(model, layouts, {}, 1); };
      step();
      const auto planned = Context::meta({1, 2}, c.rank());
      Context::Use use(*planned);
      step();
      EXPECT_EQ(planned->arena().peak_in_use(), c.arena().peak_in_use());
      EXPECT_EQ(planned->arena().high_water(), c.arena().high_water());
      EXPECT_EQ(planned->arena().allocations(), c.arena().allocations());
      EXPECT_EQ(c.arena().in_use(), 0);
    });
}

// The standard rules on one GPT-2-like block: second derivatives on two ranks compared with one rank and with
// differences.
TEST(TransformerBlock, SecondDerivativesMatchOneRankAndDifferences) {
  const i64 B = 2, T = 3, C = 4, H = 2, D = 2, F = 8;
  const std::vector<Shape> shapes = {{C}, {C}, {H * D, C}, {H * D, C}, {H * D, C}, {H * D}, {C, H * D},
                                     {C}, {C}, {C},        {F, C},     {F},        {C, F},  {C}};
  const auto R = Placement::replicated();
  const Placement col = Placement::sharded(0, D), row = Placement::sharded(1, D), up = Placement::sharded(0),
                  down = Placement::sharded(1);
  const std::vector<Placement> rules = {R, R, col, col, col, col, row, R, R, R, up, up, down, R};
  auto run = [&](int order, bool sharded, const std::vector<std::vector<double>>& values) {
    std::vector<Tensor> p;
    for (size_t i = 0; i < shapes.size(); ++i)
      p.push_back(place(shapes[i], values[i], sharded ? on_mp(rules[i]) : Layout{}).watched());
    const Tensor x = place({B, T, C}, values.back(), {}).watched();
    p.push_back(x);
    auto heads = [&](const Tensor& t) { return reshape(t, {B, T, H, D}); };
    const Tensor h = layer_norm(x, p[0], p[1], 1e-5);
    const Tensor a = attention(heads(linear(h, p[2], p[5])), heads(linear(h, p[3])), heads(linear(h, p[4])),
                               {.scale = 0.7, .causal = true});
    const Tensor x1 = x + linear(reshape(a, {B, T, H * D}), p[6], p[7]);
    const Tensor m = unary(Unary::gelu_tanh, linear(layer_norm(x1, p[8], p[9], 1e-5), p[10], p[11]));
    const Tensor y = x1 + linear(m, p[12], p[13]);
    const auto g = grad(sum_all(square(y) * y), p, {.create_graph = order > 1});
    std::vector<std::vector<double>> out;
    if (order == 1) {
      for (const Tensor& t : g) out.push_back(to_values(t));
      return out;
    }
    Tensor s;
    for (size_t i = 0; i < g.size(); ++i) {
      const Tensor d = place(g[i].shape(), Random(50 + i).values(g[i].numel()), {});
      s = s.defined() ? s + sum_all(g[i] * d) : sum_all(g[i] * d);
    }
    for (const Tensor& t : grad(s, p)) out.push_back(to_values(t));
    return out;
  };
  std::vector<std::vector<double>> values;
  for (size_t i = 0; i < shapes.size(); ++i) values.push_back(Random(i).values(numel(shapes[i])));
  values.push_back(Random(99).values(B * T * C, -2, 2));
  std::vector<std::vector<double>> one;
  on_one_rank([&](Context&) {
    one = run(2, false, values);
    // Along the directions: d/dt g(p + t d) . e = e^T H d for random d, with e the directions of `run`.
    const double step = 1e-5;
    auto moved = values;
    double expected = 0, difference = 0;
    for (int sign : {1, -1}) {
      for (size_t i = 0; i < values.size(); ++i) {
        const auto d = Random(500 + i).values(static_cast<i64>(values[i].size()));
        for (size_t j = 0; j < d.size(); ++j) {
          moved[i][j] = values[i][j] + sign * step * d[j];
          if (sign == 1) expected += one[i][j] * d[j];
        }
      }
      const auto g = run(1, false, moved);
      for (size_t i = 0; i < g.size(); ++i) {
        const auto e = Random(50 + i).values(static_cast<i64>(g[i].size()));
        for (size_t j = 0; j < e.size(); ++j) difference += sign * g[i][j] * e[j] / (2 * step);
      }
    }
    EXPECT_NEAR(difference / expected, 1, 1e-6);
  });
  on_mesh({1, 2}, [&](Context&) {
    const auto two = run(2, true, values);
    for (size_t i = 0; i < one.size(); ++i) EXPECT_LT(distance(two[i], one[i]), 1e-12) << i;
  });
}

}  // namespace
}  // namespace redco

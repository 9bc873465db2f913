#include "autograd/grad.h"

#include <gtest/gtest.h>

#include "ops/attention.h"
#include "ops/cross_entropy.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "ops/experts.h"
#include "ops/linear.h"
#include "ops/norm.h"
#include "ops/reduce.h"
#include "ops/shape.h"
#include "ops/softmax.h"
#include "support/ranks.h"

namespace redco {
namespace {

using namespace redco::testing;

Tensor scalar(double v) { return from_values({1}, std::vector<double>{v}); }

TEST(Tape, RecordsOnlyWhatDescendsFromWatched) {
  on_one_rank([](Context&) {
    const Tensor a = scalar(2), w = scalar(3).watched();
    EXPECT_FALSE((a * a).node());
    EXPECT_TRUE((a * w).node());
    {
      NoGrad off;
      EXPECT_FALSE((a * w).node());
    }
    EXPECT_FALSE(grad(w * w, {w})[0].node());
    EXPECT_TRUE(grad(w * w, {w}, {.create_graph = true})[0].node());
  });
}

TEST(Tape, GradientsCanBeDifferentiatedAgain) {
  on_one_rank([](Context&) {
    Tensor x = scalar(2).watched();
    Tensor y = square(square(x)) * x;  // x^5
    double factor = 1;
    for (int order = 1; order <= 5; ++order) {
      y = grad(y, {x}, {.create_graph = true})[0];
      factor *= 6 - order;
      EXPECT_NEAR(item(y), factor * std::pow(2, 5 - order), 1e-9) << order;
    }
    EXPECT_EQ(item(grad(y, {x})[0]), 0);  // now a constant: no path, so zeros
  });
}

// The cotangent of an output with many uses is one tensor, whatever the number of uses.
TEST(Tape, CotangentsAreAddedAsTheyArrive) {
  const auto most = [](Context& c, int uses, bool intermediate) {
    const Tensor leaf = from_values({64, 64}, std::vector<float>(64 * 64, 1)).watched();
    const Tensor x = intermediate ? scale(leaf, 2) : leaf;
    Tensors sums;
    for (int i = 1; i <= uses; ++i) sums.push_back(sum_all(scale(x, i)));
    const Tensor y = add(sums);
    sums.clear();
    const Tensor g = grad(y, {leaf})[0];
    if (!c.is_meta()) {
      EXPECT_EQ(to_values(g)[0], uses * (uses + 1) / 2 * (intermediate ? 2 : 1));
    }
    return c.arena().high_water();
  };
  for (const bool intermediate : {false, true}) {
    const auto planned = [&](int uses) {
      const auto c = Context::meta({1, 1}, 0);
      const Context::Use use(*c);
      return most(*c, uses, intermediate);
    };
    EXPECT_LE(planned(24), planned(4) + 16 * 1024) << intermediate;
    on_one_rank([&](Context& c) { most(c, 24, intermediate); });
  }
}

// Also if an op's cotangent and a sum of such have other placements on an axis with one rank, as those of the
// bias of scores that all layers of T5 share.
TEST(Tape, CotangentsOfASharedBiasAreAddedAsTheyArrive) {
  const auto planned = [](const Mesh& mesh, int layers) {
    const auto c = Context::meta(mesh, 0);
    const Context::Use use(*c);
    const Tensor bias = Tensor({1, 4, 64, 64}, DType::f32, {}).watched();
    Tensor x({2, 64, 4, 8}, DType::f32, {});
    for (int i = 0; i < layers; ++i)
      x = recompute([&](const Tensor& h) { return attention(h, h, h, {}, {}, bias); }, x);
    grad(sum_all(x), {bias});
    return c->arena().high_water();
  };
  for (const Mesh& mesh : {Mesh(1, 1), Mesh(2, 1), Mesh(1, 2)}) {
    const i64 states = 2 * 64 * 4 * 8 * 4;
    EXPECT_LE(planned(mesh, 12), planned(mesh, 4) + 8 * states + 16 * 1024) << mesh.dp() << "x" << mesh.mp();
  }
}

TEST(Tape, GradientsOfIntermediateAndUnusedInputs) {
  on_one_rank([](Context&) {
    const Tensor x = scalar(2).watched(), unused = from_values({3}, std::vector<double>{1, 2, 3}).watched();
    const Tensor h = square(x), y = h * h * x;
    const auto g = grad(y, {h, x, unused, y});
    EXPECT_EQ(item(g[0]), 2 * 4 * 2);
    EXPECT_EQ(item(g[1]), 5 * 16);  // also through h
    EXPECT_EQ(to_values(g[2]), (std::vector<double>(3)));
    EXPECT_EQ(item(g[3]), 1);
  });
}

TEST(Tape, SecondBackwardNeedsRetain) {
  on_one_rank([](Context&) {
    const Tensor x = scalar(2).watched();
    const Tensor y = square(x) * x;
    EXPECT_EQ(item(grad(y, {x}, {.retain = true})[0]), 12);
    EXPECT_EQ(item(grad(y, {x})[0]), 12);
    EXPECT_THROW(grad(y, {x}), UsageError);
    const Tensor z = square(x) * x;
    EXPECT_EQ(item(grad(z, {x}, {.create_graph = true})[0]), 12);
    EXPECT_EQ(item(grad(z, {x})[0]), 12);
  });
}

TEST(Tape, NamesAreRestoredIfABackwardFails) {
  on_one_rank([](Context& c) {
    const Tensor x = scalar(2).watched();
    const Tensor y = square(x);
    grad(y, {x});
    EXPECT_THROW(grad(y, {x}), UsageError);
    EXPECT_STREQ(c.phase, "forward");
    EXPECT_TRUE(c.recording);
  });
}

TEST(Tape, LongChainsAreReleasedWithoutRecursion) {
  on_one_rank([](Context&) {
    const Tensor x = scalar(1).watched();
    {
      Tensor y = x;
      for (int i = 0; i < 200000; ++i) y = scale(y, 1);
    }  // never differentiated: released from its end
    Tensor y = x;
    for (int i = 0; i < 50000; ++i) y = y * x;  // saves tensors that hold nodes
    { const Tensor dropped = y * y; }
    EXPECT_EQ(item(grad(y, {x})[0]), 50001);
  });
}

// The backward frees what nodes saved; the last handle frees the rest.
TEST(Tape, TheBackwardFreesSavedTensors) {
  on_one_rank([](Context& c) {
    const i64 before = c.arena().in_use();
    {
      const Tensor x = zeros({1000}).watched();
      const i64 one = c.arena().in_use() - before;
      Tensor y = x;
      for (int i = 0; i < 20; ++i) y = exp(scale(y, 0.1));
      EXPECT_GE(c.arena().in_use() - before, 20 * one);
      const Tensor loss = sum_all(y);
      y = Tensor();
      const Tensor g = grad(loss, {x})[0];
      EXPECT_LE(c.arena().in_use() - before, 3 * one)
          << "x, g and small tensors only, although `loss` still exists";
    }
    EXPECT_EQ(c.arena().in_use(), before);
    {  // neither outputs saved in their own node nor graphs of gradients form cycles
      const Tensor x = zeros({1000}).watched();
      const Tensor g = grad(sum_all(tanh(x) * softmax(x)), {x}, {.create_graph = true})[0];
    }
    EXPECT_EQ(c.arena().in_use(), before);
  });
}

// --- recompute ---

// A block like a transformer's: column-split, row-split, dropout.
struct Block {
  Tensor w1, w2, b;
  Tensor operator()(const Tensor& x) const {
    const Tensor h = gelu(linear(layer_norm(x, {}, {}, 1e-5), w1));
    return x + dropout(linear(h, w2, b), 0.3, Context::current().key("block"));
  }
};
Block make_block() {
  return {place({8, 4}, Random(1).values(32), on_mp(Placement::sharded(0))).watched(),
          place({4, 8}, Random(2).values(32), on_mp(Placement::sharded(1))).watched(),
          place({4}, Random(3).values(4), {}).watched()};
}

TEST(Recompute, GivesTheSameBitsWithTheSameCollectives) {
  on_mesh({1, 2}, [](Context& c) {
    const Block block = make_block();
    const Tensor x = place({3, 4}, Random(4).values(12), {}).watched();
    const std::vector<Tensor> wrt = {x, block.w1, block.w2, block.b};
    auto run = [&](bool recomputed) {
      c.group(Axis::mp).reset_counts();
      c.random_scope = "layer 0";
      Tensor y = recomputed ? recompute(block, x) : block(x);
      c.random_scope = "layer 1";
      y = recomputed ? recompute(block, y) : block(y);
      c.random_scope = "";
      std::vector<std::vector<double>> out = {to_values(y)};
      const i64 forward = c.group(Axis::mp).counted(Collective::all_reduce).calls;
      for (const Tensor& g : grad(sum_all(square(y)), wrt)) out.push_back(to_values(g));
      out.push_back({static_cast<double>(forward)});
      return out;
    };
    const auto plain = run(false);
    const i64 calls = c.group(Axis::mp).counted(Collective::all_reduce).calls;
    EXPECT_EQ(run(true), plain);
    EXPECT_EQ(c.group(Axis::mp).counted(Collective::all_reduce).calls, calls);
  });
}

// Results of collectives inside ops (the maximum over a cut vocabulary) are kept too.
TEST(Recompute, KeepsResultsOfCollectivesInsideOps) {
  on_mesh({1, 2}, [](Context& c) {
    const Tensor w = place({10, 4}, Random(1).values(40), on_mp(Placement::sharded(0))).watched();
    const Tensor x = place({3, 4}, Random(2).values(12), {}).watched();
    const Tensor ids = from_ids({3}, {{1, 9, 4}});
    for (double smoothing : {0.0, 0.1}) {
      auto f = [&](const Tensor& h) { return sum_all(cross_entropy(linear(h, w), ids, smoothing)); };
      c.group(Axis::mp).reset_counts();
      const auto plain = grad(f(x), {x, w});
      const i64 calls = c.group(Axis::mp).counted(Collective::all_reduce).calls;
      const auto again = grad(recompute(f, x), {x, w});
      EXPECT_EQ(c.group(Axis::mp).counted(Collective::all_reduce).calls, 2 * calls);
      for (int i = 0; i < 2; ++i) EXPECT_EQ(to_values(again[i]), to_values(plain[i]));
    }
  });
}

TEST(Recompute, HandlesNestingPartialsAndIdentityFunctions) {
  on_mesh({1, 2}, [](Context& c) {
    const Block block = make_block();
    const std::vector<double> values = Random(4).values(12);
    auto twice = [&](const Tensor& x) {
      return recompute([&](const Tensor& h) { return block(recompute(block, h)); }, x);
    };
    for (const Placement& p : {Placement::replicated(), Placement::partial(), Placement::sharded(0)}) {
      const Tensor x = place({3, 4}, values, on_mp(p)).watched(), z = place({3, 4}, values, {}).watched();
      const auto a = grad(sum_all(square(twice(x))), {x, block.w1});
      const auto b = grad(sum_all(square(block(block(z)))), {z, block.w1});
      for (int i = 0; i < 2; ++i) EXPECT_LT(distance(to_values(a[i]), to_values(b[i])), 1e-13);
    }
    // A Partial that f captures.
    const Tensor p = place({3, 4}, values, on_mp(Placement::partial())).watched();
    const Tensor x = place({3, 4}, values, {}).watched();
    const Tensor y = recompute([&](const Tensor& h) { return exp(p) * h + p; }, x);
    const auto g = grad(sum_all(y), {x, p});
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(to_values(g[0])[i], std::exp(values[i]), 1e-14);
      EXPECT_NEAR(to_values(g[1])[i], std::exp(values[i]) * values[i] + 1, 1e-14);
    }
    EXPECT_EQ(to_values(grad(sum_all(recompute([](const Tensor& h) { return h; }, x)), {x})[0]),
              std::vector<double>(12, 1));
    c.group(Axis::mp).barrier();
  });
}

// A block with a second result, a third one without gradient, and its own input as a fourth.
TEST(Recompute, SeveralResults) {
  on_mesh({1, 2}, [](Context&) {
    const Block block = make_block();
    const Tensor x = place({3, 4}, Random(4).values(12), {}).watched();
    const auto f = [block](const Tensor& h) {
      const Tensor y = block(h), p = softmax(linear(y, block.w1));
      return Tensors{y, sum(p, {0}), sum(top_k_mask(stop_gradient(p), 2), {0}), h};
    };
    const std::vector<Tensor> wrt = {x, block.w1, block.w2, block.b};
    const auto loss = [](const Tensors& y, int which) {
      const Tensor balance = sum_all(y[1] * y[2]);
      return which == 0   ? sum_all(square(y[0]))
             : which == 1 ? balance
                          : sum_all(square(y[0] * y[3])) + balance;
    };
    for (const int which : {0, 1, 2}) {
      const auto plain = grad(loss(f(x), which), wrt);
      const auto again = grad(loss(recompute(f, x), which), wrt);
      const auto twice =
          grad(sum_all(square(grad(loss(recompute(f, x), which), {x}, {.create_graph = true})[0])), wrt);
      const auto second = grad(sum_all(square(grad(loss(f(x), which), {x}, {.create_graph = true})[0])), wrt);
      for (size_t i = 0; i < wrt.size(); ++i) {
        EXPECT_EQ(to_values(again[i]), to_values(plain[i])) << which << " " << i;
        EXPECT_LT(distance(to_values(twice[i]), to_values(second[i])), 1e-11) << which << " " << i;
      }
    }
  });
}

TEST(Recompute, CanBeDifferentiatedTwice) {
  on_mesh({1, 2}, [](Context&) {
    const Block block = make_block();
    const Tensor x = place({3, 4}, Random(4).values(12), {}).watched();
    auto second = [&](bool recomputed) {
      const Tensor y = recomputed ? recompute(block, x) : block(x);
      const auto g = grad(sum_all(square(y)), {x, block.w1}, {.create_graph = true});
      return grad(sum_all(square(g[0])) + sum_all(square(g[1])), {x, block.w1, block.w2});
    };
    const auto a = second(true), b = second(false);
    for (size_t i = 0; i < a.size(); ++i) EXPECT_LT(distance(to_values(a[i]), to_values(b[i])), 1e-12) << i;
  });
}

// Weights whose gradients are requested as factors get the same pairs.
TEST(Recompute, GivesFactors) {
  on_mesh({1, 2}, [](Context&) {
    const Block block = make_block();
    const Tensor x = place({3, 4}, Random(4).values(12), {}).watched();
    const std::vector<Tensor> wrt = {x, block.w1, block.w2, block.b};
    auto run = [&](const std::function<Tensor(const Tensor&)>& f) {
      const auto g = factored_grad(sum_all(square(f(block(x)))), wrt, {false, true, true, false});
      std::vector<std::vector<double>> out = {to_values(g.whole[0]), to_values(g.whole[3])};
      for (size_t i : {1, 2}) {
        EXPECT_FALSE(g.whole[i].defined());
        EXPECT_EQ(g.factors[i].size(), 2u);
        for (const RowFactors& f : g.factors[i]) {
          out.push_back(to_values(f.g));
          out.push_back(to_values(f.x));
        }
      }
      return out;
    };
    const auto plain = run(block);
    EXPECT_EQ(run([&](const Tensor& h) { return recompute(block, h); }), plain);
    const auto nested = [&](const Tensor& h) {
      return recompute([&](const Tensor& in) { return recompute(block, in); }, h);
    };
    EXPECT_EQ(run(nested), plain);
  });
}

TEST(Recompute, KeepsLessMemory) {
  on_one_rank([](Context& c) {
    const Tensor x = full({1000}, 0.5).watched();
    auto f = [](const Tensor& h) {
      Tensor y = h;
      for (int i = 0; i < 10; ++i) y = exp(scale(y, 0.1));
      return y;
    };
    const i64 before = c.arena().in_use();
    const Tensor y = recompute(f, x);
    EXPECT_LE(c.arena().in_use() - before, Arena::rounded(4000));
  });
}

// --- vmap ---

// One inner step of MAML on a two-layer network, the loss after it, and the gradient through the step: all
// tasks together compared with one task after the other.
TEST(Vmap, InnerStepsOfAllTasksEqualThoseOfSingleTasks) {
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{1, 2}, Mesh{2, 1}})
    on_mesh(mesh, [](Context&) {
      const i64 T = 3, B = 2, I = 4, H = 6;
      const auto xs = Random(1).values(T * B * I), ys = Random(2).values(T * B);
      auto inner = [&](const Tensor& w1, const Tensor& w2, const Tensor& x, const Tensor& y) {
        auto loss = [&](const Tensor& a, const Tensor& b) {
          return sum(square(reshape(linear(tanh(linear(x, a)), b), {B}) - y), {0});
        };
        // Fast weights start as a copy for each task, so that a sum over tasks has a separate gradient for
        // each task.
        const Tensor zero = scale(sum(y, {0}), 0);
        const Tensor a = w1 + reshape(zero, {1, 1}), b = w2 + reshape(zero, {1, 1});
        Tensor total = loss(a, b);
        if (total.hidden()) total = sum_all(total.with_hidden(0));
        const auto g = grad(total, {a, b}, {.create_graph = true});
        return loss(a - scale(g[0], 0.1), b - scale(g[1], 0.1));
      };
      const Tensor w1 = place({H, I}, Random(3).values(H * I), on_mp(Placement::sharded(0))).watched();
      const Tensor w2 = place({1, H}, Random(4).values(H), on_mp(Placement::sharded(1))).watched();
      const Layout tasks = on_dp(Placement::sharded(0));
      const Tensor x = place({T, B, I}, xs, tasks), y = place({T, B}, ys, tasks);
      const Tensor after = vmap(
          [&](const std::vector<Tensor>& in) { return std::vector<Tensor>{inner(w1, w2, in[0], in[1])}; },
          {x, y})[0];
      ASSERT_EQ(after.shape(), Shape{T});
      const auto g = grad(sum_all(after), {w1, w2});
      std::vector<double> losses;
      Tensor sum_of_losses;
      for (i64 t = 0; t < T; ++t) {
        const Tensor xt = place({B, I}, {xs.begin() + t * B * I, xs.begin() + (t + 1) * B * I}, {});
        const Tensor yt = place({B}, {ys.begin() + t * B, ys.begin() + (t + 1) * B}, {});
        const Tensor l = inner(w1, w2, xt, yt);
        losses.push_back(item(l));
        sum_of_losses = t ? sum_of_losses + l : l;
      }
      EXPECT_LT(distance(to_values(after), losses), 1e-13);
      const auto h = grad(sum_of_losses, {w1, w2});
      for (int i = 0; i < 2; ++i) EXPECT_LT(distance(to_values(g[i]), to_values(h[i])), 1e-12) << i;
    });
}

TEST(Vmap, NestsAndRefusesConstants) {
  on_one_rank([](Context&) {
    const Tensor x = place({2, 3, 4}, Random(1).values(24), {});
    auto rows = [](const std::vector<Tensor>& in) { return std::vector<Tensor>{sum(in[0], {0})}; };
    const Tensor y = vmap([&](const std::vector<Tensor>& in) { return vmap(rows, {in[0]}); }, {x})[0];
    EXPECT_EQ(to_values(y), to_values(sum(x, {-1})));
    EXPECT_THROW(vmap([&](const std::vector<Tensor>&) { return std::vector<Tensor>{x}; }, {x}), BugError);
    EXPECT_THROW(vmap(rows, {x, zeros({3, 3})}), BugError);
  });
}

}  // namespace
}  // namespace redco

// Errors that mixed placements can cause: each of these cases once had a wrong factor of the number of ranks.
#include <gtest/gtest.h>

#include "autograd/grad.h"
#include "ops/elementwise.h"
#include "ops/linear.h"
#include "ops/norm.h"
#include "ops/reduce.h"
#include "support/ranks.h"

namespace redco {
namespace {

using namespace redco::testing;

const Placement kR = Placement::replicated(), kP = Placement::partial();

void on_each_mesh(const std::function<void(Context&)>& body) {
  for (const Mesh& m : {Mesh{1, 2}, Mesh{1, 3}, Mesh{2, 1}, Mesh{2, 2}}) on_mesh(m, body);
}

TEST(Traps, APartialUsedTwiceIsReducedBeforeUse) {
  on_each_mesh([](Context&) {
    for (const Layout& l : {on_both(kP, kR), on_both(kR, kP), on_both(kP, kP)}) {
      const Tensor x = place({2}, {3, 5}, l).watched();
      const Tensor y = x * x;
      EXPECT_LT(distance(to_values(y), {9, 25}), 1e-14);
      EXPECT_LT(distance(to_values(grad(sum_all(y), {x})[0]), {6, 10}), 1e-14);
      const Tensor z = place({2}, {3, 5}, l).watched();
      EXPECT_LT(distance(to_values(grad(sum_all(z / z + z + z), {z})[0]), {2, 2}), 1e-14);
    }
  });
}

TEST(Traps, BiasAndResidualAreAddedToAPartialOnce) {
  on_each_mesh([](Context&) {
    for (const Layout& l : {on_both(kP, kR), on_both(kR, kP), on_both(kP, kP)}) {
      const Tensor y = place({2, 2}, {1, 2, 3, 4}, l), b = place({2}, {10, 20}, {}).watched();
      const Tensor with = add_bias(y, b);
      EXPECT_LT(distance(to_values(with), {11, 22, 13, 24}), 1e-14);
      EXPECT_LT(distance(to_values(grad(sum_all(with), {b})[0]), {2, 2}), 1e-14);
      const Tensor r = place({2, 2}, {5, 6, 7, 8}, {}).watched();
      const Tensor sum = place({2, 2}, {1, 2, 3, 4}, l) + r;
      EXPECT_LT(distance(to_values(sum), {6, 8, 10, 12}), 1e-14);
      EXPECT_LT(distance(to_values(grad(sum_all(sum), {r})[0]), {1, 1, 1, 1}), 1e-14);
      EXPECT_LT(distance(to_values(add_scalar(place({1}, {2}, l), 1)), {3}), 1e-14);
    }
  });
}

// The bias of a row-split linear leaves it Partial: one reduction follows, not two.
TEST(Traps, BiasOfARowSplitLinearStaysPartial) {
  on_mesh({1, 2}, [](Context& c) {
    const Tensor x = place({2, 4}, std::vector<double>(8, 1), on_mp(Placement::sharded(1)));
    const Tensor w = place({3, 4}, std::vector<double>(12, 2), on_mp(Placement::sharded(1)));
    const Tensor y = linear(x, w, place({3}, {1, 2, 3}, {}));
    EXPECT_TRUE(y.layout()[Axis::mp].is_partial());
    EXPECT_EQ(c.group(Axis::mp).counted(Collective::all_reduce).calls, 0);
    EXPECT_LT(distance(to_values(y), {9, 10, 11, 9, 10, 11}), 1e-14);
  });
}

TEST(Traps, TheCotangentOfTheGlobalLossIsOne) {
  on_each_mesh([](Context&) {
    for (const Layout& l : {Layout{}, on_both(Placement::sharded(0), kR), on_both(kR, Placement::sharded(0)),
                            on_both(Placement::sharded(0), Placement::sharded(0)), on_both(kP, kR)}) {
      const Tensor x = place({5}, {1, 2, 3, 4, 5}, l).watched();
      const Tensor loss = sum_all(square(x));
      EXPECT_LT(distance({item(loss)}, {55}), 1e-14);
      EXPECT_LT(distance(to_values(grad(loss, {x})[0]), {2, 4, 6, 8, 10}), 1e-14);
    }
  });
}

// Rows cut over dp and a replicated parameter: its gradient is Partial and sums over all rows.
TEST(Traps, AReplicatedParameterSumsOverTheRowsOfAllReplicas) {
  on_mesh({2, 2}, [](Context&) {
    const Tensor x = place({5, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, batch_layout());
    const Tensor w = place({2, 2}, {1, 0, 0, 1}, on_mp(Placement::sharded(0))).watched();
    const Tensor g = grad(sum_all(linear(x, w)), {w})[0];
    EXPECT_TRUE(g.layout()[Axis::dp].is_partial());
    EXPECT_LT(distance(to_values(g), {25, 30, 25, 30}), 1e-14);
    // The norm of gradients, composed of ops, counts every element once.
    EXPECT_NEAR(item(sum_all(square(g))), 2 * (625 + 900), 1e-10);
  });
}

// Three Partial cotangents of one tensor (q, k, v) are summed before a single reduction.
TEST(Traps, CotangentsAreSummedBeforeTheyAreReduced) {
  on_mesh({1, 2}, [](Context& c) {
    const Tensor x = place({2, 4}, Random(1).values(8), {}).watched();
    std::vector<Tensor> w;
    for (int i = 0; i < 3; ++i)
      w.push_back(place({6, 4}, Random(2 + i).values(24), on_mp(Placement::sharded(0))).watched());
    const Tensor h = layer_norm(x, {}, {}, 1e-5);
    const Tensor y = linear(h, w[0]) * linear(h, w[1]) * linear(h, w[2]);
    const Tensor loss = sum_all(y);
    for (Axis a : Context::current().mesh().axes()) c.group(a).reset_counts();
    grad(loss, {x, w[0], w[1], w[2]});
    EXPECT_EQ(c.group(Axis::mp).counted(Collective::all_reduce).calls, 1);
    EXPECT_EQ(c.group(Axis::mp).counted(Collective::all_gather).calls, 0);
  });
}

// Parallel attention and MLP: x + (a + b) is reduced once.
TEST(Traps, NaryAddReducesOnce) {
  on_mesh({1, 2}, [](Context& c) {
    const Tensor x = place({4}, {1, 2, 3, 4}, {}), a = place({4}, {1, 1, 1, 1}, on_mp(kP)),
                 b = place({4}, {2, 2, 2, 2}, on_mp(kP));
    EXPECT_LT(distance(to_values(add({x, a + b})), {4, 5, 6, 7}), 1e-14);
    EXPECT_EQ(c.group(Axis::mp).counted(Collective::all_reduce).calls, 1);
  });
}

}  // namespace
}  // namespace redco

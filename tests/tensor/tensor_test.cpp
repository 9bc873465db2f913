#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <set>

#include "ops/reduce.h"
#include "support/ranks.h"
#include "tensor/node.h"

namespace redco {
namespace {

using namespace redco::testing;

TEST(Tensor, ShapesDimsAndRangesFollowTheLayout) {
  on_mesh({2, 2}, [](Context& c) {
    const Tensor t({5, 6}, DType::f32, on_both(Placement::sharded(1, 4), Placement::sharded(0)));
    EXPECT_EQ(t.local(), (Shape{c.coord().dp() == 0 ? 3 : 2, c.coord().mp() == 0 ? 4 : 2}));
    EXPECT_EQ(t.range(1).begin, c.coord().mp() == 0 ? 0 : 4);
    EXPECT_EQ(t.numel(), 30);
    EXPECT_EQ(t.local_bytes(), t.local_numel() * 4);
    EXPECT_EQ(t.size(-1), 6);
    EXPECT_THROW(t.size(2), BugError);
    const Tensor h = t.with_hidden(1);
    EXPECT_EQ(h.visible(), 1);
    EXPECT_EQ(h.size(0), 6);
    EXPECT_EQ(h.size(-1), 6);
    EXPECT_THROW(h.size(-2), BugError);  // hidden dims are not counted from the right either
    EXPECT_EQ(describe(t), "f32 (5, 6) [mp S(1, unit 4), dp S(0)]");
    EXPECT_EQ(describe(Tensor()), "undefined");
    EXPECT_THROW(Tensor::view(t, {5, 9}, t.layout(), 0), BugError);
  });
}

TEST(Tensor, MetaHasNoStorage) {
  const auto c = Context::meta({2, 4}, 5);
  Context::Use use(*c);
  EXPECT_EQ(c->coord().dp(), 1);
  EXPECT_EQ(c->coord().mp(), 1);
  EXPECT_EQ(c->rank(), 5);
  const Tensor t = zeros({i64{1} << 30, 1000});
  EXPECT_TRUE(t.is_meta());
  EXPECT_EQ(c->arena().in_use(), (i64{1} << 30) * 4000);
}

// Code that reads values runs the same in a plan: there all of them are 0.
TEST(Tensor, PlannedValuesAreZerosOfTheRightNumber) {
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 1}}) {
    const auto context = Context::meta(mesh, 0);
    const Context::Use use(*context);
    const Tensor x = random_normal({4, 3}, 1),
                 ids = from_ids({4}, std::vector<i32>{1, 2, 3, 4}, batch_layout());
    EXPECT_EQ(to_values(x), std::vector<double>(12, 0));
    EXPECT_EQ(to_ids(ids), std::vector<i32>(4, 0));
    EXPECT_EQ(item(sum_all(x)), 0);
  }
}

TEST(Tensor, LocalPartsFormTheGlobalTensor) {
  on_mesh({3, 1}, [](Context& c) {
    const std::vector<std::vector<i32>> parts = {{1, 2}, {3, 4}, {5}};
    EXPECT_EQ(to_ids(from_local_ids({5}, parts[c.rank()])), (std::vector<i32>{1, 2, 3, 4, 5}));
    EXPECT_THROW(from_local_ids({4}, std::vector<i32>(3)), BugError);
    const std::vector<float> mine(c.rank() == 2 ? 1 : 2, static_cast<float>(c.rank()));
    EXPECT_EQ(to_values(from_local_values({5}, mine)), (std::vector<double>{0, 0, 1, 1, 2}));
  });
}

TEST(Random, DrawsAreEqualOnEveryLayout) {
  std::vector<double> uniform, normal;
  on_one_rank([&](Context&) {
    uniform = to_values(random_uniform({5, 3, 4}, 9));
    normal = to_values(random_normal({50, 40}, 9));
  });
  double sum = 0, squares = 0;
  for (double x : normal) {
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / 2000, 0, 5 / std::sqrt(2000.0));  // five standard errors
  EXPECT_NEAR(squares / 2000, 1, 5 * std::sqrt(2 / 2000.0));
  for (double x : uniform) EXPECT_TRUE(x >= 0 && x < 1);
  on_mesh({2, 3}, [&](Context&) {
    for (int d : {0, 1, 2})
      EXPECT_EQ(
          to_values(random_uniform({5, 3, 4}, 9, on_both(Placement::sharded(d, 2), Placement::sharded(0)))),
          uniform);
  });
}

// Rows of a batch draw by their index in the global batch, so draws do not depend on the split into
// micro-batches and replicas. Tensors that are not part of the batch get equal draws in every micro-batch.
TEST(Random, RowsOfABatchAreCountedInTheGlobalBatch) {
  using Draw = Tensor (*)(const Shape&, u64, const Layout&);
  for (const Draw draw : {Draw(random_uniform), Draw(random_normal)}) {
    std::vector<double> whole, weights;
    on_one_rank([&](Context&) {
      whole = to_values(draw({7, 3}, 9, batch_layout()));
      weights = to_values(draw({7, 3}, 9, {}));
    });
    EXPECT_EQ(std::set<double>(whole.begin(), whole.end()).size(), whole.size());
    EXPECT_EQ(weights, whole);
    for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 1}, Mesh{3, 2}})
      for (const i64 rows : {1, 2, 3, 7})
        on_mesh(mesh, [&](Context& c) {
          std::vector<double> parts;
          for (i64 first = 0; first < 7; first += rows) {
            Restore<i64> offset(c.random.row_offset, first);
            const auto part = to_values(draw({std::min<i64>(rows, 7 - first), 3}, 9, batch_layout()));
            parts.insert(parts.end(), part.begin(), part.end());
            EXPECT_EQ(to_values(draw({7, 3}, 9, on_mp(Placement::sharded(0)))), weights);
          }
          EXPECT_EQ(parts, whole) << rows << " rows a micro-batch";
        });
  }
}

TEST(Context, KeysDifferByEveryPart) {
  on_one_rank([](Context& c) {
    std::set<u64> keys = {c.key("a"), c.key("b")};
    c.random_scope = "h.0";
    keys.insert(c.key("a"));
    c.random_scope = "h.1";
    keys.insert(c.key("a"));
    c.random.step = 1;
    keys.insert(c.key("a"));
    c.random.seed = 1;
    keys.insert(c.key("a"));
    EXPECT_EQ(keys.size(), 6u);
    const u64 key = c.key("a");
    c.random.row_offset = 7;  // a coordinate, not a part of the key
    EXPECT_EQ(c.key("a"), key);
  });
}

TEST(Context, SubmeshSharesMemoryAndTensors) {
  on_mesh({2, 2}, [](Context& c) {
    const Tensor w = place({4}, {1, 2, 3, 4}, on_mp(Placement::sharded(0)));
    const auto sub = Context::mp_submesh(c);
    Context::Use use(*sub);
    EXPECT_EQ(sub->mesh().ranks(), 2);
    EXPECT_EQ(to_values(w), (std::vector<double>{1, 2, 3, 4}));
    EXPECT_EQ(&sub->arena(), &c.arena());
  });
}

TEST(Context, AMissingContextIsAnError) { EXPECT_THROW(Context::current(), BugError); }

TEST(Ledger, SumsByNameAndScope) {
  Ledger l;
  l.op("linear", "forward/mlp", 10, 4);
  l.op("linear", "forward/mlp", 5, 4);
  l.op("linear", "backward/mlp", 1, 1);
  l.collective(Collective::all_reduce, "mp", "forward/mlp", 64);
  ASSERT_EQ(l.lines().size(), 3u);
  EXPECT_EQ(l.lines()[0], (LedgerLine{"linear", "forward/mlp", 2, 15, 8, 4}));
  ASSERT_EQ(l.collectives().size(), 1u);
  EXPECT_EQ(l.collectives()[0], (LedgerLine{"all_reduce mp", "forward/mlp", 1, 0, 64, 64}));
  l.reset();
  EXPECT_TRUE(l.lines().empty());
}

}  // namespace
}  // namespace redco

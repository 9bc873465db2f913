#include "ops/redistribute.h"

#include <gtest/gtest.h>

#include "support/ranks.h"
#include "tensor/transfer.h"

namespace redco {
namespace {

using namespace redco::testing;

std::vector<Placement> all_of(const Shape& s) {
  std::vector<Placement> out = {Placement::replicated(), Placement::partial()};
  for (size_t d = 0; d < s.size(); ++d)
    for (i64 unit : {1, 2, 3}) out.push_back(Placement::sharded(static_cast<int>(d), unit));
  return out;
}

// Bytes and calls in the ledger for an axis.
std::pair<i64, i64> in_ledger(Context& c, Axis axis) {
  i64 calls = 0, bytes = 0;
  for (const LedgerLine& l : c.ledger()->collectives())
    if (l.what.ends_with(c.mesh().name(axis))) {
      calls += l.count;
      bytes += l.bytes;
    }
  return {calls, bytes};
}
std::pair<i64, i64> counted(Context& c, Axis axis) {
  i64 calls = 0, bytes = 0;
  for (Collective k :
       {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter, Collective::all_to_all}) {
    calls += c.group(axis).counted(k).calls;
    bytes += c.group(axis).counted(k).bytes;
  }
  return {calls, bytes};
}

// Every pair of layouts of a tensor: the value does not change, moves that need communication are counted,
// others communicate nothing.
void every_pair(const Mesh& mesh, const Shape& shape, int one_in) {
  const std::vector<double> values = Random(5).values(numel(shape));
  const std::vector<Placement> ps = all_of(shape);
  on_mesh(mesh, [&](Context& c) {
    Random random(7);
    for (const Placement& from_mp : ps)
      for (const Placement& from_dp : ps)
        for (const Placement& to_mp : ps)
          for (const Placement& to_dp : ps) {
            if (random.below(one_in) != 0) continue;
            if (mesh.mp() == 1 && (!from_mp.is_replicated() || !to_mp.is_replicated())) continue;
            if (mesh.dp() == 1 && (!from_dp.is_replicated() || !to_dp.is_replicated())) continue;
            const Layout from = on_both(from_mp, from_dp), to = on_both(to_mp, to_dp);
            const Tensor t = place(shape, values, from);
            c.keep_ledger();
            for (Axis a : mesh.axes()) c.group(a).reset_counts();
            const Tensor moved = redistribute(t, to);
            const std::string what = to_string(from, mesh) + " to " + to_string(to, mesh);
            ASSERT_EQ(moved.layout(), to) << what;
            ASSERT_EQ(moved.local(), local_shape(shape, to, c.mesh(), c.coord())) << what;
            for (Axis a : mesh.axes())
              ASSERT_EQ(in_ledger(c, a), counted(c, a)) << what << " on " << mesh.name(a);
            const bool same_dim = to_mp.is_sharded() && from_dp.is_sharded();
            if (from_mp.is_replicated() && from_dp.is_replicated() && !same_dim) {
              ASSERT_EQ(counted(c, Axis::mp).first + counted(c, Axis::dp).first, 0) << what;
            }
            ASSERT_LT(distance(to_values(moved), values), 1e-14) << what;
            ASSERT_LT(distance(to_values(t), values), 1e-14) << what << ": the source";
          }
  });
}

// A mesh of three axes that may all cut the same dim.
TEST(Redistribute, ThreeAxesKeepTheValue) {
  const Mesh mesh(2, 2, {{"sp", 2, AxisRole::model}});
  const Shape shape = {11, 3};
  const std::vector<double> values = Random(5).values(numel(shape));
  const std::vector<Placement> ps = all_of(shape);
  on_mesh(mesh, [&](Context& c) {
    Random random(7);
    const auto draw = [&] {
      Layout l;
      for (Axis a : mesh.axes()) l[a] = ps[random.below(static_cast<i64>(ps.size()))];
      return l;
    };
    for (int i = 0; i < 300; ++i) {
      const Layout from = draw(), to = draw();
      const Tensor t = place(shape, values, from);
      const std::string what = to_string(from, mesh) + " to " + to_string(to, mesh);
      const Tensor moved = redistribute(t, to);
      ASSERT_EQ(moved.layout(), to) << what;
      ASSERT_EQ(moved.local(), local_shape(shape, to, mesh, c.coord())) << what;
      ASSERT_LT(distance(to_values(moved), values), 1e-14) << what;
      ASSERT_LT(distance(to_values(t), values), 1e-14) << what << ": the source";
    }
  });
}

TEST(Redistribute, EveryPairOfPlacementsOnOneAxisKeepsTheValue) {
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{1, 2}, Mesh{2, 1}, Mesh{1, 3}, Mesh{3, 1}}) {
    every_pair(mesh, {5, 4}, 1);
    every_pair(mesh, {2, 3, 7}, 1);
    every_pair(mesh, {1, 2}, 1);  // empty shards
    every_pair(mesh, {0, 3}, 1);
  }
}

TEST(Redistribute, PairsOfLayoutsOnTwoAxesKeepTheValue) {
  every_pair({2, 2}, {5, 4}, 3);
  every_pair({2, 2}, {2, 3, 7}, 25);
  every_pair({2, 2}, {1, 2}, 5);
  every_pair({2, 3}, {7, 4}, 10);
  every_pair({3, 2}, {7, 4}, 10);
}

TEST(Redistribute, IdsKeepTheirValues) {
  on_mesh({2, 2}, [](Context&) {
    const std::vector<i32> ids = {1, 2, 3, 4, 5, 6, 7};
    Tensor t = from_ids({7}, ids);
    for (const Layout& l : {on_both(Placement::sharded(0), Placement::sharded(0)),
                            on_dp(Placement::sharded(0, 3)), on_mp(Placement::sharded(0, 2)), Layout{}}) {
      t = redistribute(t, l);
      EXPECT_EQ(to_ids(t), ids);
    }
    EXPECT_THROW(redistribute(t, Axis::mp, Placement::partial()), BugError);
  });
}

// Odd numbers of two-byte elements.
TEST(Redistribute, TwoByteElementsKeepTheirValues) {
  // Index in the whole tensor of an element of the local block.
  const auto number = [](const Tensor& t, i64 local) {
    i64 at = 0, step = 1;
    for (int d = t.rank() - 1; d >= 0; --d) {
      at += (t.range(d).begin + local % t.local()[d]) * step;
      local /= t.local()[d];
      step *= t.shape()[d];
    }
    return static_cast<std::uint16_t>(at + 1);
  };
  for (const Mesh& mesh : {Mesh{1, 2}, Mesh{1, 3}, Mesh{2, 2}})
    on_mesh(mesh, [&](Context&) {
      for (const Shape& shape : {Shape{7}, Shape{5, 3}, Shape{3, 5, 3}}) {
        std::vector<Placement> ps = all_of(shape);
        std::erase(ps, Placement::partial());
        for (const Placement& from : ps)
          for (const Placement& to : ps) {
            const Layout start = on_both(from, ps.back());
            const Tensor t(shape, DType::bf16, start);
            std::vector<bf16> values(t.local_numel());
            for (i64 i = 0; i < t.local_numel(); ++i) values[i].bits = number(t, i);
            copy_from_host<bf16>(values, t);
            const Tensor moved = redistribute(t, Axis::mp, to);
            const std::vector<bf16> after = host_copy<bf16>(moved);
            for (i64 i = 0; i < moved.local_numel(); ++i)
              ASSERT_EQ(after[i].bits, number(moved, i)) << to_string(shape) << " " << to_string(start, mesh)
                                                         << " to " << to_string(to) << ", element " << i;
          }
      }
    });
}

// Groups of q8 and q4 move whole, with shorter last ones. Places that would cut groups are refused.
TEST(Redistribute, GroupsAreNeverCut) {
  for (const Mesh& mesh : {Mesh{1, 2}, Mesh{1, 3}, Mesh{2, 2}})
    for (const DType type : {DType::q8, DType::q4})
      for (const Shape& shape : {Shape{5, 100}, Shape{3, 2, 64}, Shape{7, 20}})
        on_mesh(mesh, [&](Context& c) {
          const int last = static_cast<int>(shape.size()) - 1;
          std::vector<double> values(static_cast<std::size_t>(numel(shape)));
          for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 13) - 6;
          const Tensor whole =
              from_values(shape, std::span<const float>(std::vector<float>(values.begin(), values.end())));
          Tensor stored(shape, type, {});
          c.run(&Kernels::cast, whole, stored);
          const std::vector<double> kept = to_values(widened(stored));
          const std::vector<Placement> places = {Placement::replicated(), Placement::sharded(0),
                                                 Placement::sharded(last, 32), Placement::sharded(last, 64)};
          for (const Placement& from : places)
            for (const Placement& to : places) {
              const Tensor moved = redistribute(redistribute(stored, on_both(from, places[1])), Axis::mp, to);
              EXPECT_EQ(to_values(widened(moved)), kept) << to_string(from) << " to " << to_string(to);
            }
          EXPECT_EQ(keeps_groups(stored, Axis::mp, Placement::sharded(last, 20)), shape == Shape({7, 20}));
          if (shape == Shape{5, 100})
            EXPECT_THROW(redistribute(stored, Axis::mp, Placement::sharded(last, 1)), BugError);
        });
}

// If mp cuts a dim first, equal borders of the whole dim are not equal borders of its parts.
TEST(Redistribute, UnitsOfTheInnerCutDecideTheBorders) {
  on_mesh({2, 2}, [](Context&) {
    const std::vector<double> v = {1, 2, 3, 4, 5, 6};
    const Tensor t = place({6}, v, on_both(Placement::sharded(0), Placement::sharded(0, 1)));  // 3 = 2 + 1
    const Tensor u = redistribute(t, Axis::dp, Placement::sharded(0, 3));                      // 3 = 3 + 0
    EXPECT_EQ(u.local_numel(), u.range(0).size());
    EXPECT_EQ(to_values(u), v);
  });
}

TEST(Redistribute, AReducedPartialIsReplacedInPlace) {
  on_mesh({1, 2}, [](Context& c) {
    const Tensor t = place({3}, {1, 2, 3}, on_mp(Placement::partial()));
    const Tensor other = t;
    redistribute(t, Axis::mp, Placement::replicated());
    EXPECT_TRUE(other.layout()[Axis::mp].is_replicated());
    redistribute(other, Axis::mp, Placement::replicated());
    EXPECT_EQ(c.group(Axis::mp).counted(Collective::all_reduce).calls, 1);
  });
}

// R -> P: the first rank keeps the value, so nothing is rounded or counted twice.
TEST(Redistribute, ReplicatedToPartialIsExact) {
  on_mesh({1, 3}, [](Context& c) {
    const Tensor p = redistribute(from_values({1}, std::vector<double>{0.1}), Axis::mp, Placement::partial());
    EXPECT_EQ(host_copy<double>(p)[0], c.rank() == 0 ? 0.1 : 0.0);
    EXPECT_EQ(to_values(p)[0], 0.1);
  });
}

TEST(Redistribute, MovesWithoutCommunicationCostNothing) {
  on_mesh({1, 2}, [](Context&) {
    const Tensor r = place({4, 4}, std::vector<double>(16), {});
    EXPECT_EQ(move_cost(r, Axis::mp, Placement::sharded(0)), 0);
    EXPECT_EQ(move_cost(r, Axis::mp, Placement::partial()), 0);
    EXPECT_EQ(move_cost(r, Axis::dp, Placement::sharded(0)), 0);
    const Tensor s = redistribute(r, Axis::mp, Placement::sharded(0));
    EXPECT_EQ(move_cost(s, Axis::mp, Placement::partial()), 0);
    EXPECT_EQ(move_cost(s, Axis::mp, Placement::sharded(0, 2)), 0);  // the same borders
    EXPECT_EQ(move_cost(s, Axis::mp, Placement::sharded(1)), 16 * 8 / 2);
    EXPECT_EQ(move_cost(s, Axis::mp, Placement::replicated()), 16 * 8);
  });
}

}  // namespace
}  // namespace redco

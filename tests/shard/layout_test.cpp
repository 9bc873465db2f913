#include "shard/layout.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "shard/state_dim.h"
#include "shard/state_sharding.h"

namespace redco {
namespace {

TEST(ShardRange, RangesAreDisjointAndLargerOnesComeFirst) {
  for (i64 size = 0; size <= 40; ++size)
    for (i64 unit = 1; unit <= 12; ++unit)
      for (int shards = 1; shards <= 7; ++shards) {
        i64 end = 0, before = -1;
        const i64 units = (size + unit - 1) / unit;
        for (int r = 0; r < shards; ++r) {
          const Range range = shard_range(size, unit, shards, r);
          ASSERT_EQ(range.begin, end);
          end = range.end;
          const i64 mine = (range.size() + unit - 1) / unit;
          if (range.end < size) {
            ASSERT_EQ(range.size() % unit, 0) << "whole units";
          }
          ASSERT_GE(mine, units / shards);
          ASSERT_LE(mine, (units + shards - 1) / shards);
          if (before >= 0) {
            ASSERT_LE(mine, before) << "larger ones first";
          }
          before = mine;
        }
        ASSERT_EQ(end, size);
      }
}

TEST(ShardRange, GivesTheExpectedBorders) {
  EXPECT_EQ(shard_range(40, 8, 2, 0), (Range{0, 24}));  // 5 heads of 8
  EXPECT_EQ(shard_range(40, 8, 2, 1), (Range{24, 40}));
  EXPECT_EQ(shard_range(50257, 1, 2, 0).size(), 25129);
  EXPECT_EQ(shard_range(2, 1, 3, 2), (Range{2, 2}));  // the third rank gets nothing
  EXPECT_THROW(shard_range(4, 0, 2, 0), BugError);
  EXPECT_THROW(shard_range(4, 1, 2, 2), BugError);
}

TEST(Mesh, RanksCountTheFirstAxisFastest) {
  const Mesh mesh(3, 2, {{"sp", 2, AxisRole::model}, {"pp", 2, AxisRole::data}});
  EXPECT_EQ(mesh.ranks(), 24);
  EXPECT_EQ(mesh.ranks(AxisRole::model), 4);
  EXPECT_EQ(mesh.axes().size(), 4);
  for (int r = 0; r < mesh.ranks(); ++r) {
    const Coord at = coord_of(mesh, r);
    int rank = 0;
    for (Axis a : mesh.axes()) rank += at.at(a) * mesh.stride(a);
    EXPECT_EQ(rank, r);
  }
  EXPECT_EQ(coord_of(mesh, 7).mp(), 1);
  EXPECT_EQ(coord_of(mesh, 7).dp(), 0);
  EXPECT_EQ(coord_of(mesh, 7).at(Axis(2)), 1);
  Layout l;
  l[Axis::dp] = Placement::sharded(1, 8);
  l[Axis(2)] = Placement::partial();
  EXPECT_EQ(to_string(l, mesh), "[mp R, dp S(1, unit 8), sp P, pp R]");
  EXPECT_EQ(to_string(l, Mesh(1, 1)), "[mp R, dp S(1, unit 8)]");
  const MeshAxis more{"x", 1, AxisRole::model};
  EXPECT_THROW(Mesh(1, 1, {more, more, more, more, more}), BugError);
}

// Both axes may cut the same dim. Each element is on exactly one rank; mp's shards are contiguous and dp cuts
// each of them.
TEST(LocalRange, EveryElementIsOnExactlyOneRank) {
  for (i64 size : {0, 1, 5, 12})
    for (i64 mp_unit : {1, 2, 5})
      for (i64 dp_unit : {1, 3})
        for (int mp : {1, 2, 3})
          for (int dp : {1, 2, 3}) {
            const Mesh mesh{dp, mp};
            Layout l;
            l[Axis::mp] = Placement::sharded(0, mp_unit);
            l[Axis::dp] = Placement::sharded(0, dp_unit);
            std::vector<int> holders(size);
            for (int r = 0; r < mesh.ranks(); ++r) {
              const Range range = local_range({size}, l, mesh, coord_of(mesh, r), 0);
              const Range part = shard_range(size, mp_unit, mp, coord_of(mesh, r).mp());
              EXPECT_GE(range.begin, part.begin);
              EXPECT_LE(range.end, part.end);
              for (i64 i = range.begin; i < range.end; ++i) ++holders[i];
              EXPECT_EQ(local_shape({size}, l, mesh, coord_of(mesh, r)), Shape{range.size()});
            }
            EXPECT_EQ(holders, std::vector<int>(size, 1));
          }
}

TEST(SameCut, ComparesBorders) {
  const Shape s = {12, 4};
  EXPECT_TRUE(same_cut(s, Placement::sharded(0, 2), Placement::sharded(0, 6), 2));
  EXPECT_FALSE(same_cut(s, Placement::sharded(0, 2), Placement::sharded(0, 5), 2));
  EXPECT_FALSE(same_cut(s, Placement::sharded(0), Placement::sharded(1), 2));
  EXPECT_FALSE(same_cut(s, Placement::replicated(), Placement::partial(), 2));
  EXPECT_TRUE(same_cut(s, Placement::sharded(0), Placement::replicated(), 1));
}

TEST(LocalShape, ADimThatDoesNotExistIsAnError) {
  Layout l;
  l[Axis::mp] = Placement::sharded(2);
  EXPECT_THROW(local_shape({3, 4}, l, {1, 2}, {0, 0}), BugError);
}

TEST(KvRepeat, SmallestDivisorThatFeedsEveryShard) {
  EXPECT_EQ(kv_repeat(32, 8, 4), 1);
  EXPECT_EQ(kv_repeat(32, 8, 8), 1);
  EXPECT_EQ(kv_repeat(32, 8, 16), 2);
  EXPECT_EQ(kv_repeat(32, 8, 12), 2);
  EXPECT_EQ(kv_repeat(32, 8, 64), 4);  // not more than the heads
  EXPECT_EQ(kv_repeat(12, 2, 5), 3);
  EXPECT_EQ(kv_repeat(8, 8, 16), 1);
  EXPECT_THROW(kv_repeat(5, 2, 1), BugError);
}

TEST(Layout, ToStringShowsEachPlacement) {
  Layout l;
  l[Axis::mp] = Placement::sharded(1, 8);
  l[Axis::dp] = Placement::partial();
  EXPECT_EQ(to_string(l, Mesh(2, 2)), "[mp S(1, unit 8), dp P]");
}

// Sharded state cuts the first dim of which a rank has several indices.
TEST(Layout, StateIsCutWhereARankHasSeveralIndices) {
  const Mesh m(4, 2);
  Layout experts;
  experts[Axis::mp] = Placement::sharded(0);
  EXPECT_EQ(state_dim(experts, {2, 7, 5}, m), 1);  // one expert for each shard
  EXPECT_EQ(state_dim(experts, {3, 7, 5}, m), 0);  // the first shard has two
  EXPECT_EQ(state_dim(Layout{}, {2, 7, 5}, m), 0);
  EXPECT_EQ(state_dim(Layout{}, {1, 1, 5}, m), 2);
  EXPECT_EQ(state_dim(Layout{}, {1}, m), 0);
  const Layout parts = sharded_over_replicas(experts, {2, 7, 5}, m);
  EXPECT_EQ(parts[Axis::dp], Placement::sharded(1));
  EXPECT_EQ(local_shape({2, 7, 5}, parts, m, coord_of(m, 0)), (Shape{1, 2, 5}));
  EXPECT_EQ(elements_before({1, 7, 5}, 1, 2), 10);
}

}  // namespace
}  // namespace redco

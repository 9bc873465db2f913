#include "ckpt/box.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace redco::ckpt {
namespace {

std::vector<std::array<i64, 3>> walk(const Shape& shape, const Box& box, const Strides& strides,
                                     i64 max_count = 1000) {
  SegmentWalk w(shape, box, strides, max_count);
  std::vector<std::array<i64, 3>> all;
  for (Segment s; w.next(&s);) all.push_back({s.file, s.memory, s.count});
  return all;
}
using Expected = std::vector<std::array<i64, 3>>;

TEST(Box, DimsThatAreContiguousInBothAreMerged) {
  Shape s{4, 3, 5};
  EXPECT_EQ(walk(s, whole(s), contiguous(whole(s))), (Expected{{0, 0, 60}}));
  Box rows{{1, 3}, {0, 3}, {0, 5}};
  EXPECT_EQ(walk(s, rows, contiguous(rows)), (Expected{{15, 0, 30}}));
  Box columns{{0, 2}, {1, 3}, {0, 5}};
  EXPECT_EQ(walk(s, columns, contiguous(columns)), (Expected{{5, 0, 10}, {20, 10, 10}}));
  Box one{{0, 2}, {1, 2}, {4, 5}};
  EXPECT_EQ(walk(s, one, contiguous(one)), (Expected{{9, 0, 1}, {24, 1, 1}}));
}

TEST(Box, LongSegmentsAreCut) {
  EXPECT_EQ(walk({10}, {{1, 9}}, {1}, 3), (Expected{{1, 0, 3}, {4, 3, 3}, {7, 6, 2}}));
  EXPECT_EQ(walk({2, 3}, {{0, 2}, {0, 3}}, {1, 2}, 2),
            (Expected{{0, 0, 2}, {2, 4, 1}, {3, 1, 2}, {5, 5, 1}}));
}

TEST(Box, EmptyBoxesAndScalars) {
  EXPECT_EQ(walk({}, {}, {}), (Expected{{0, 0, 1}}));
  EXPECT_EQ(walk({0}, {{0, 0}}, {1}), Expected{});
  EXPECT_EQ(walk({i64{1} << 62, 0, i64{1} << 62}, {{0, i64{1} << 62}, {0, 0}, {0, i64{1} << 62}}, {1, 1, 1}),
            Expected{});
  EXPECT_EQ(numel(Box{}), 1);
}

TEST(Box, BoxesOutsideAreBugs) {
  EXPECT_THROW(walk({3}, {{0, 4}}, {1}), BugError);
  EXPECT_THROW(walk({3}, {{-1, 2}}, {1}), BugError);
  EXPECT_THROW(walk({3}, {{2, 1}}, {1}), BugError);
  EXPECT_THROW(walk({3}, {}, {}), BugError);
}

}  // namespace
}  // namespace redco::ckpt

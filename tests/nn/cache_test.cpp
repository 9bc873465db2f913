// The forms of a layer's cache, compared with plain lists of tokens.
#include "nn/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nn/cache_forms.h"
#include "nn/layers.h"
#include "ops/shape.h"
#include "support/ranks.h"

namespace redco {
namespace {

using redco::testing::on_mesh;
using redco::testing::on_mp;
using redco::testing::on_one_rank;
using redco::testing::place;
using redco::testing::Random;

// Entries [B, n, 1, 1] of the tokens of each row.
Tensor entries_of(const std::vector<std::vector<double>>& rows) {
  std::vector<double> v;
  for (const auto& r : rows) v.insert(v.end(), r.begin(), r.end());
  return place({static_cast<i64>(rows.size()), static_cast<i64>(rows[0].size()), 1, 1}, v, {}, DType::f32);
}

// The columns of row r that are held.
std::vector<double> row_of(const LayerCache& c, i64 r) {
  const CacheView held = c.read();
  const Tensor& t = held.entries[0];
  const auto v = to_values(cast(t, DType::f32));
  const auto begin = v.begin() + static_cast<std::ptrdiff_t>(r * t.shape()[1]);
  return {begin, begin + static_cast<std::ptrdiff_t>(c.length() - held.first)};
}

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

TEST(ColumnCache, RowsAreForkedDroppedAndMoved) {
  on_one_rank([](Context&) {
    ColumnCache c(CacheOptions{.capacity = 6});
    EXPECT_TRUE(c.read().entries.empty());
    c.append({entries_of({{1, 2}, {11, 12}, {21, 22}})}, 2);
    c.append({entries_of({{3}, {13}, {23}})}, 1);
    EXPECT_EQ(c.length(), 3);
    EXPECT_EQ(c.bytes(), 3 * 6 * 4);
    // Two rows change places; fork() knows that they differ in the last column only.
    const std::vector<i64> source = {1, 0, 1};
    c.fork(source, 1);
    EXPECT_THAT(row_of(c, 0), ElementsAre(1, 2, 13));
    EXPECT_THAT(row_of(c, 1), ElementsAre(11, 12, 3));
    EXPECT_THAT(row_of(c, 2), ElementsAre(21, 22, 13));
    const std::vector<i64> kept = {2, 0};
    c.drop_rows(kept);
    EXPECT_THAT(row_of(c, 0), ElementsAre(21, 22, 13));
    EXPECT_THAT(row_of(c, 1), ElementsAre(1, 2, 13));
    c.move(2, 6);
    EXPECT_THAT(row_of(c, 1), ElementsAre(0, 0, 1, 2, 13));
    c.move(-3, 6);
    EXPECT_THAT(row_of(c, 1), ElementsAre(2, 13));
    EXPECT_TRUE(c.can_drop_columns(1));
    c.drop_columns(1);
    EXPECT_THAT(row_of(c, 0), ElementsAre(22));
    c.move(0, 9);  // room for more columns
    c.append({entries_of({{1, 2, 3, 4, 5, 6, 7, 8}, {1, 2, 3, 4, 5, 6, 7, 8}})}, 8);
    EXPECT_EQ(c.length(), 9);
    EXPECT_THROW(c.append({entries_of({{1}, {1}})}, 1), BugError);
  });
}

TEST(ColumnCache, RowsOfAnotherCacheEndAtTheSameColumn) {
  on_one_rank([](Context&) {
    const CacheOptions o{.capacity = 8};
    ColumnCache prompts(o), c(o);
    prompts.append({entries_of({{0, 5, 6}, {7, 8, 9}})}, 3);
    const std::vector<RowCopy> first = {{1, 0, 3}, {0, 2, 2}};
    c.insert(prompts, first, 3);
    EXPECT_EQ(c.length(), 3);
    EXPECT_THAT(row_of(c, 0), ElementsAre(7, 8, 9));
    EXPECT_THAT(row_of(c, 1), ElementsAre(0, 0, 0));
    EXPECT_THAT(row_of(c, 2), ElementsAre(0, 5, 6));
    c.append({entries_of({{1}, {1}, {1}})}, 1);
    const std::vector<RowCopy> second = {{1, 1, 2}};
    c.insert(prompts, second, 3);
    EXPECT_THAT(row_of(c, 1), ElementsAre(0, 0, 8, 9));
    EXPECT_THAT(row_of(c, 0), ElementsAre(7, 8, 9, 1));
  });
}

TEST(ColumnCache, StoresBf16InHalfTheBytes) {
  on_mesh({1, 2}, [](Context&) {
    const Layout heads = on_mp(Placement::sharded(2));
    ColumnCache wide(CacheOptions{.capacity = 5}), c(CacheOptions{.capacity = 5, .dtype = CacheDType::bf16});
    const auto values = Random(4).values(2 * 3 * 4 * 2);
    const Tensor x = place({2, 3, 4, 2}, values, heads, DType::f32);
    for (LayerCache* l : {static_cast<LayerCache*>(&wide), static_cast<LayerCache*>(&c)})
      l->append({x, x}, 3);
    EXPECT_EQ(c.bytes(), wide.bytes() / 2);
    const CacheView held = c.read();
    EXPECT_EQ(held.entries[1].dtype(), DType::bf16);
    EXPECT_TRUE(held.entries[1].layout() == heads);
    EXPECT_EQ(to_values(cast(narrow(held.entries[1], 1, 0, 3), DType::f32)),
              to_values(cast(cast(x, DType::bf16), DType::f32)));
  });
}

// A cache with a window holds what a query can still see, under any sequence of operations, and no more than
// its slots.
TEST(ColumnCache, AWindowKeepsWhatAQueryCanSee) {
  on_one_rank([](Context&) {
    constexpr i64 kWindow = 5, kMost = 400;
    Random random(8);
    const CacheOptions o{.capacity = kMost};
    ColumnCache all(o), c(o, kWindow);
    double next = 1;
    i64 bytes = 0;
    bool dropped = false;
    for (int step = 0; step < 300 && all.length() < kMost - 8; ++step) {
      const i64 kind = step < 2 ? 0 : random.below(8), n = 1 + random.below(4);
      if (kind == 1) {
        const std::vector<i64> source = {random.below(2), random.below(2)};
        all.fork(source, n);
        c.fork(source, n);
      } else if (kind == 2 && all.length() > 20) {
        all.move(-n, kMost);
        c.move(-n, kMost);
      } else if (kind == 3) {
        all.move(n, kMost);
        c.move(n, kMost);
      } else if (kind == 4 && all.length() > 8 && c.can_drop_columns(all.length() - n)) {
        dropped |= c.read().first > 0;
        all.drop_columns(all.length() - n);
        c.drop_columns(c.length() - n);
      } else {
        std::vector<std::vector<double>> rows(2);
        for (auto& r : rows)
          for (i64 i = 0; i < n; ++i) r.push_back(next++);
        all.append({entries_of(rows)}, n);
        c.append({entries_of(rows)}, n);
      }
      ASSERT_EQ(c.length(), all.length());
      bytes = std::max(bytes, c.bytes());
      for (i64 r = 0; r < 2; ++r) {
        const auto expected = row_of(all, r), held = row_of(c, r);
        const i64 seen = std::min<i64>(kWindow - 1, all.length());
        ASSERT_GE(static_cast<i64>(held.size()), seen);
        ASSERT_THAT(std::vector<double>(held.end() - seen, held.end()),
                    ElementsAreArray(expected.end() - seen, expected.end()))
            << "step " << step << " kind " << kind;
      }
    }
    EXPECT_TRUE(dropped);
    EXPECT_GT(c.read().first, 0);
    EXPECT_LT(bytes, all.bytes() / 4);
    EXPECT_FALSE(c.can_drop_columns(c.read().first));
  });
}

TEST(MemoryCache, IsWrittenOnceAndWidenedForLongerMemories) {
  on_one_rank([](Context&) {
    const CacheOptions o{};
    MemoryCache c(o), longer(o);
    c.append({entries_of({{1, 2}, {11, 12}})}, 2);
    EXPECT_THROW(c.append({entries_of({{1, 2}, {11, 12}})}, 2), BugError);
    longer.append({entries_of({{5, 6, 7}})}, 3);
    const std::vector<RowCopy> copies = {{0, 1, 9}};
    c.insert(longer, copies, 2);
    EXPECT_THAT(row_of(c, 0), ElementsAre(1, 2, 0));
    EXPECT_THAT(row_of(c, 1), ElementsAre(5, 6, 7));
    c.move(3, 10);  // columns of the decoder
    const std::vector<i64> source = {1, 0}, kept = {1};
    c.fork(source, 1);
    EXPECT_THAT(row_of(c, 1), ElementsAre(5, 6, 7));
    c.drop_rows(kept);
    EXPECT_THAT(row_of(c, 0), ElementsAre(5, 6, 7));
  });
}

TEST(ModelCache, ALayerThatIsNotAppendedIsAnError) {
  on_one_rank([](Context&) {
    ModelCache::Layers layers;
    for (int i = 0; i < 2; ++i) layers.push_back(std::make_unique<ColumnCache>(CacheOptions{.capacity = 4}));
    ModelCache cache(std::move(layers), {}, 4);
    cache.layer(0).append({entries_of({{1, 2}})}, 2);
    EXPECT_THROW(cache.advance(2), BugError);
  });
}

}  // namespace
}  // namespace redco

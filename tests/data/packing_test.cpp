// Rows of packed examples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <tuple>

#include "base/file.h"
#include "data/examples_testing.h"

namespace redco {
namespace {

using test::slurp;
using ::testing::HasSubstr;

// Lines of random lengths; text of n bytes has n + 1 tokens.
std::string lines_of_lengths(const std::vector<int>& tokens) {
  std::string s;
  for (std::size_t k = 0; k < tokens.size(); ++k)
    s += "{\"text\": \"" +
         std::string(static_cast<std::size_t>(tokens[k] - 1), static_cast<char>('a' + k % 26)) + "\"}\n";
  return s;
}

TEST_F(Examples, PackingHasEveryTokenOnce) {
  std::mt19937 random(7);
  for (const i64 max : {16, 64}) {
    std::vector<int> lengths;
    for (int k = 0; k < 700; ++k) lengths.push_back(2 + static_cast<int>(random() % 30));
    const ExampleIndex index = build(lines_of_lengths(lengths));
    const ExampleRows packed = rows(index, {.max_length = max});
    std::vector<std::vector<RowPiece>> of(lengths.size());
    i64 in_rows = 0;
    for (i64 r = 0; r < packed.size(); ++r) {
      i64 tokens = 0;
      for (const RowPiece& p : packed.pieces(r)) {
        tokens += p.length;
        of[p.example].push_back(p);
      }
      EXPECT_EQ(tokens, packed.tokens(r));
      EXPECT_LE(tokens, max);
      in_rows += tokens;
    }
    for (std::size_t k = 0; k < lengths.size(); ++k) {
      std::sort(of[k].begin(), of[k].end(), [](auto& a, auto& b) { return a.begin < b.begin; });
      if (lengths[k] <= max) EXPECT_EQ(of[k].size(), 1u);  // never split
      u32 next = 0;
      for (const RowPiece& p : of[k]) {
        EXPECT_EQ(p.begin, next);
        next = p.begin + p.length - 1;  // the last token again, as the first of the next piece
      }
      EXPECT_EQ(next + 1, static_cast<u32>(lengths[k]));
    }
    // First-fit with 64 open rows wastes little space if there are many short examples.
    if (max == 64) EXPECT_GT(static_cast<double>(in_rows) / static_cast<double>(packed.size() * max), 0.95);
    EXPECT_EQ(packed.counts().tokens, static_cast<u64>(in_rows));
    // A second build of the same lines returns the existing file.
    const std::string path = build_rows(index, {.max_length = max});
    const std::string bytes = slurp(path);
    remove_file(path);
    EXPECT_EQ(slurp(build_rows(index, {.max_length = max})), bytes);
    EXPECT_NE(build_rows(index, {.max_length = max, .packing = false}), path);
  }
}

// The tokens of an epoch are those of every other; only their neighbours in the rows change.
TEST_F(Examples, EachEpochCombinesOtherExamples) {
  std::mt19937 random(5);
  std::vector<int> lengths;
  for (int k = 0; k < 900; ++k) lengths.push_back(2 + static_cast<int>(random() % 40));
  const ExampleIndex index = build(lines_of_lengths(lengths));
  const ExampleRows packed = rows(index, {.max_length = 32});  // longer ones are split
  using Key = std::tuple<u64, u32, u32>;
  const auto rows_of = [&](const PackingOrder& order) {
    std::vector<std::set<Key>> out;
    for (i64 r = 0; r < packed.size(); ++r) {
      std::set<Key>& row = out.emplace_back();
      i64 tokens = 0;
      for (const RowPiece& p : packed.pieces(r, order)) {
        row.insert({p.example, p.begin, p.length});
        tokens += p.length;
      }
      EXPECT_LE(tokens, 32);
      EXPECT_EQ(tokens, packed.tokens(r, order));
    }
    return out;
  };
  const auto all_of = [](const std::vector<std::set<Key>>& in) {
    std::multiset<Key> out;
    for (const auto& row : in) out.insert(row.begin(), row.end());
    return out;
  };
  const auto file = rows_of({}), first = rows_of({3, 0}), second = rows_of({3, 1});
  EXPECT_EQ(all_of(file), all_of(first));
  EXPECT_EQ(all_of(file), all_of(second));
  EXPECT_EQ(first, rows_of({3, 0}));
  const auto common = [&](const auto& a, const auto& b) {
    i64 n = 0;
    for (const auto& row : a) n += row.size() > 1 && std::count(b.begin(), b.end(), row) > 0;
    return n;
  };
  EXPECT_LT(common(first, second), packed.size() / 20);
  EXPECT_LT(common(first, file), packed.size() / 20);
  EXPECT_LT(common(first, rows_of({4, 0})), packed.size() / 20);
}

// If many examples have each length, the exchange needs no padding: as many rows as first-fit makes.
TEST_F(Examples, ExchangeOfEqualLengthsNeedsNoPadding) {
  std::vector<int> lengths;
  for (int k = 0; k < 400; ++k) lengths.push_back(k % 2 == 0 ? 20 : 12);
  const ExampleRows packed = rows(build(lines_of_lengths(lengths)), {.max_length = 32});
  EXPECT_EQ(packed.size(), 200);
  for (i64 r = 0; r < packed.size(); ++r) EXPECT_EQ(packed.tokens(r, {1, 1}), 32);
}

TEST_F(Examples, RowsInTheOrderOfTheFile) {
  const ExampleIndex index = build(lines_of_lengths({6, 5, 4, 3, 10, 2}));
  const ExampleRows packed = rows(index, {.max_length = 10});
  auto numbers = [&](i64 r) {
    std::vector<u64> out;
    for (const RowPiece& p : packed.pieces(r)) out.push_back(p.example);
    return out;
  };
  // 6+4 is full immediately; 10 too; 5+3+2 at the end.
  ASSERT_EQ(packed.size(), 3);
  EXPECT_EQ(numbers(0), (std::vector<u64>{0, 2}));
  EXPECT_EQ(numbers(1), (std::vector<u64>{4}));
  EXPECT_EQ(numbers(2), (std::vector<u64>{1, 3, 5}));
  const ExampleRows single = rows(index, {.max_length = 10, .packing = false});
  ASSERT_EQ(single.size(), 6);
  for (i64 r = 0; r < 6; ++r) EXPECT_EQ(single.pieces(r)[0].example, static_cast<u64>(r));
}

TEST_F(Examples, TooLong) {
  const std::string lines =
      "{\"text\": \"abcdefghij\"}\n"                           // 11 tokens
      "{\"prompt\": \"abcd\", \"completion\": \"efghij\"}\n"   // 11, the first target is 4
      "{\"prompt\": \"abcdefghij\", \"completion\": \"k\"}\n"  // 12, the first target is 10
      "{\"text\": \"ab\"}\n";
  const ExampleIndex index = build(lines);
  auto of = [&](const std::string& how) {
    return rows(index, {.max_length = 8, .packing = false, .too_long = how});
  };
  const ExampleRows usual = of("");
  ASSERT_EQ(usual.size(), 4);  // two pieces, one truncated, none, one
  EXPECT_EQ(usual.pieces(0)[0].length, 8u);
  EXPECT_EQ(usual.pieces(1)[0].begin, 7u);
  EXPECT_EQ(usual.pieces(1)[0].length, 4u);
  EXPECT_EQ(usual.pieces(2)[0].length, 8u);
  EXPECT_EQ(usual.counts().split, 1u);
  EXPECT_EQ(usual.counts().truncated, 1u);
  EXPECT_EQ(usual.counts().without_target, 1u);
  EXPECT_EQ(usual.counts().left_out, 3u + 4u);
  EXPECT_EQ(of("truncate").size(), 3);
  EXPECT_EQ(of("skip").size(), 1);
  EXPECT_EQ(of("skip").counts().skipped, 3u);
  EXPECT_EQ(of("split").size(), 7);
  try {
    of("error");
    ADD_FAILURE();
  } catch (const ContentsError& e) {
    EXPECT_THAT(e.what(), HasSubstr("a.jsonl:1: 11 tokens, more than data.max_length=8"));
  }
  EXPECT_THROW(rows(index, {.max_length = 1}), UsageError);
  const ExampleIndex only = build("{\"prompt\": \"abcdefghij\", \"completion\": \"k\"}\n");
  EXPECT_THROW(rows(only, {.max_length = 8}), ContentsError);
}

}  // namespace
}  // namespace redco

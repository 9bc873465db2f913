#include "kernels/cpu/products/products.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <span>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/groups.h"
#include "kernels/cpu/products/gemm.h"
#include "kernels/cpu/products/limits.h"
#include "kernels/cpu/products/tiles.h"
#include "kernels/isa.h"
#include "kernels/kernels_testing.h"

namespace redco::kernels {
namespace {

// The matrix in a storage type, and the values that it keeps.
template <class S>
std::pair<std::vector<S>, std::vector<float>> stored(const std::vector<float>& w, i64 n, i64 k) {
  std::vector<S> out(static_cast<std::size_t>(n * (std::is_same_v<S, bf16> ? k : groups_in(k))));
  std::vector<float> kept(w.size());
  if constexpr (std::is_same_v<S, bf16>) {
    to_bf16(w.data(), out.data(), n * k);
    from_bf16(out.data(), kept.data(), n * k);
  } else {
    to_groups(w.data(), out.data(), n, k);
    from_groups(out.data(), kept.data(), n, k);
  }
  return {out, kept};
}

// Blocks of a file: random codes, and scales so small that weights are at most about 1.
template <class G>
std::pair<std::vector<G>, std::vector<float>> random_blocks(i64 n, i64 k, std::uint64_t seed) {
  std::vector<G> out(static_cast<std::size_t>(n * blocks_in<G>(k)));
  std::vector<float> kept(static_cast<std::size_t>(n * k));
  const auto draws = random_array<float>(static_cast<i64>(out.size() * sizeof(G)), seed);
  auto* const bytes = reinterpret_cast<std::uint8_t*>(out.data());
  for (std::size_t i = 0; i < draws.size(); ++i)
    bytes[i] = static_cast<std::uint8_t>(static_cast<i32>(draws[i] * 1e6f));
  for (G& block : out) {
    const auto small = [](std::uint16_t& x) { x = static_cast<std::uint16_t>(0x0c00 | (x & 0x83ff)); };
    small(block.scale);  // 2^-12 to 2^-11
    if constexpr (kHasMinimum<G>) small(block.minimum);
  }
  from_groups(out.data(), kept.data(), n, k);
  return {out, kept};
}

// An operand of a product: as products() reads it, and its values [rows, columns] in fp64.
struct Operand {
  Matrix matrix;
  std::vector<double> values;
  std::vector<std::byte> bytes;
};

float rounded_to_bf16(float x) { return wide(narrow(x)); }

// `rounds`: the values that the product reads are rounded to bf16.
Operand operand(DType type, i64 rows, i64 columns, bool trans, std::uint64_t seed, bool rounds) {
  const i64 lines = trans ? columns : rows, length = trans ? rows : columns;
  static std::map<std::pair<i64, std::uint64_t>, std::vector<float>> arrays;  // of all cases
  const auto [at, is_new] = arrays.try_emplace({lines * length, seed});
  if (is_new) at->second = random_array<float>(lines * length, seed);
  const std::vector<float>& x = at->second;
  Operand out;
  std::vector<float> kept = x;
  const auto keep = [&](auto stored_and_kept) {
    auto& [stored_x, values] = stored_and_kept;
    const auto* const first = reinterpret_cast<const std::byte*>(stored_x.data());
    out.bytes.assign(first, first + stored_x.size() * sizeof(stored_x[0]));
    kept = values;
  };
  if (type == DType::f32) {
    const auto* const first = reinterpret_cast<const std::byte*>(x.data());
    out.bytes.assign(first, first + x.size() * sizeof(float));
  } else if (type == DType::bf16) {
    keep(stored<bf16>(x, lines, length));
  } else {
    visit_groups(type, [&](auto zero) {
      using G = decltype(zero);
      if constexpr (kMade<G>) {
        keep(stored<G>(x, lines, length));
      } else {
        keep(random_blocks<G>(lines, length, seed));
      }
    });
  }
  out.matrix.type = type;
  out.matrix.row = bytes_of(type, ceil_div(length, group_of(type)) * group_of(type));
  out.matrix.trans = trans;
  out.values.resize(static_cast<std::size_t>(rows * columns));
  for (i64 r = 0; r < rows; ++r)
    for (i64 c = 0; c < columns; ++c) {
      const float v = kept[trans ? c * rows + r : r * columns + c];
      out.values[r * columns + c] = static_cast<double>(rounds ? rounded_to_bf16(v) : v);
    }
  return out;
}

// A row as it is multiplied with groups: 16-bit integers with a scale for each group.
void round_to_words(std::vector<double>& row) {
  for (std::size_t begin = 0; begin < row.size(); begin += kGroup) {
    const std::size_t end = std::min(row.size(), begin + kGroup);
    float most = 0;
    for (std::size_t i = begin; i < end; ++i) most = std::max(most, std::fabs(static_cast<float>(row[i])));
    for (std::size_t i = begin; i < end && most > 0; ++i) {
      const double word = std::round(static_cast<float>(row[i]) * (kTopWord / most));
      EXPECT_LE(std::fabs(word), kTopWord);
      const double kept = word * static_cast<double>(most / static_cast<float>(kTopWord));
      // Half a step, and the rounding of the scale.
      EXPECT_LE(std::fabs(kept - row[i]), static_cast<double>(most) * 1.02 / (2 * kTopWord));
      row[i] = kept;
    }
  }
}

struct ProductCase {
  i64 m, n;
  std::vector<i64> k;  // of each term
  DType a = DType::f32, b = DType::f32, y = DType::f32;
  bool trans_a = false, trans_b = true, bias = false;
};

void check_products(const ProductCase& c, bool bf16) {
  const std::string what = fmt::format("m={} n={} terms={} k={} a={}{} b={}{} y={} bias={} bf16={}", c.m, c.n,
                                       c.k.size(), c.k[0], name_of(c.a), c.trans_a ? " trans" : "",
                                       name_of(c.b), c.trans_b ? " trans" : "", name_of(c.y), c.bias, bf16);
  // Products of few rows are not rounded, except for one row with groups. Nor those of few columns: their
  // transpose has few rows.
  const auto has_few = [&c](i64 m, DType a, bool trans_a, DType b, bool trans_b) {
    const i64 most = trans_b && is_grouped(b) ? 2 * kFewRows : kFewRows;
    if (m > most || (trans_a && (m > kFewRows || a != DType::f32))) return false;
    return trans_b ? c.k.size() == 1 || !is_grouped(b) : b == DType::f32;
  };
  const bool short_sums = std::ranges::any_of(c.k, [](i64 k) { return k < 256; });
  const bool few = has_few(c.m, c.a, c.trans_a, c.b, c.trans_b) ||
                   (!is_grouped(c.b) && c.n <= (short_sums ? 2 : kFewRows) &&
                    has_few(c.n, c.b, !c.trans_b, c.a, !c.trans_a));
  const bool rounds = bf16 && isa() >= Isa::avx512_bf16 && !few;
  // Twice the same product, so that one call has several.
  std::vector<Product> all(2);
  std::vector<Operand> operands;
  operands.reserve(2 * c.k.size());
  std::vector<double> want(static_cast<std::size_t>(c.m * c.n));
  const std::vector<float> bias = random_array<float>(c.n, 7);
  for (std::size_t t = 0; t < c.k.size(); ++t) {
    const i64 k = c.k[t];
    operands.push_back(operand(c.a, c.m, k, c.trans_a, 2 * t + 1, rounds));
    Operand& a = operands.back();
    if (few && c.m == 1 && is_grouped(c.b)) round_to_words(a.values);
    operands.push_back(operand(c.b, k, c.n, c.trans_b, 2 * t + 2, rounds));
    const Operand& b = operands.back();
    for (Product& p : all) {
      p.terms.push_back({a.matrix, b.matrix, k});
      p.terms.back().a.data = a.bytes.data();
      p.terms.back().b.data = b.bytes.data();
    }
    gemm<double>(false, false, c.m, c.n, k, 1, a.values.data(), k, b.values.data(), c.n, 1, want.data(), c.n);
  }
  for (i64 i = 0; c.bias && i < c.m * c.n; ++i) want[i] += static_cast<double>(bias[i % c.n]);
  i64 depth = 0;
  for (i64 k : c.k) depth += k;
  const auto run = [&] {
    std::vector<float> first(want.size(), NAN), second = first;
    std::vector<redco::bf16> first16(want.size(), narrow(NAN)), second16 = first16;
    for (Product& p : all) {
      p.m = c.m;
      p.n = c.n;
      p.type = c.y;
      p.bias = c.bias ? bias.data() : nullptr;
    }
    const bool stored = c.y == DType::bf16;
    all[0].y = stored ? static_cast<void*>(first16.data()) : first.data();
    all[1].y = stored ? static_cast<void*>(second16.data()) : second.data();
    constexpr std::size_t kGuard = 1024;
    const auto size = static_cast<std::size_t>(products_workspace(all, bf16));
    std::vector<float> memory(size + kGuard, NAN);
    const std::span<float> room(memory);
    products(all, bf16, room.first(size));
    EXPECT_TRUE(std::ranges::all_of(room.subspan(size), [](float x) { return std::isnan(x); }))
        << what << ": written beyond the workspace";
    if (stored)
      for (std::size_t i = 0; i < first.size(); ++i) {
        first[i] = wide(first16[i]);
        second[i] = wide(second16[i]);
      }
    EXPECT_TRUE(same_bits(first, second)) << what;
    return first;
  };
  const double close = 4 * std::numeric_limits<float>::epsilon() * static_cast<double>(depth + 4);
  expect_close(run(), want, c.y == DType::bf16 ? close + 1.0 / 256 : close, what);
  expect_same_on_any_threads(run, what);
}

// A row of words keeps NaN and infinity apart from the groups without them, and zero where magnitudes vanish.
TEST(Products, OfARowWithGroupsKeepWhatIsNotFinite) {
  on_every_isa([] {
    const i64 k = 64;
    const std::vector<float> weights(static_cast<std::size_t>(k), 127.0f);  // with scales of exactly 1
    std::vector<Group8> w(2);
    to_groups<Group8>(weights.data(), w.data(), 1, k);
    const auto product = [&](const std::vector<float>& x) {
      float y = 0;
      Product p{.m = 1, .n = 1, .terms = {{.a = {}, .b = {}, .k = k}}, .y = &y};
      p.terms[0].a = {reinterpret_cast<const std::byte*>(x.data()), DType::f32, k * 4, false};
      p.terms[0].b = {reinterpret_cast<const std::byte*>(w.data()), DType::q8, 2 * i64{sizeof(Group8)}, true};
      std::vector<float> room(static_cast<std::size_t>(products_workspace({&p, 1}, false)));
      products({&p, 1}, false, room);
      return y;
    };
    std::vector<float> x(static_cast<std::size_t>(k), 0.5f);
    EXPECT_FLOAT_EQ(product(x), 127 * 32);
    x[3] = std::numeric_limits<float>::infinity();
    EXPECT_TRUE(std::isnan(product(x)));
    x[3] = NAN;
    EXPECT_TRUE(std::isnan(product(x)));
    std::fill(x.begin(), x.begin() + 32, 1e-40f);
    EXPECT_FLOAT_EQ(product(x), 127 * 16);
    std::fill(x.begin() + 32, x.end(), -1e-40f);
    EXPECT_EQ(product(x), 0);
  });
}

// The types that only files have: one row, few rows, tiles, and the gradient of the input, which reads the
// columns of a part of a superblock.
TEST(Products, ReadTheBlocksOfFiles) {
  on_every_isa([] {
    for (const DType b : {DType::q4_0, DType::q5_0, DType::q5_1, DType::q4_k, DType::q5_k, DType::q6_k})
      for (const i64 m : {1, 3, 40}) {
        check_products({.m = m, .n = 7, .k = {512}, .b = b, .trans_b = true, .bias = true}, false);
        check_products({.m = m, .n = 512, .k = {70}, .b = b, .trans_b = false}, false);
        if (m == 40) check_products({.m = m, .n = 512, .k = {70, 33}, .b = b, .trans_b = false}, true);
        if (m == 40) check_products({.m = m, .n = 101, .k = {256}, .b = b, .trans_b = true}, true);
      }
  });
}

// Few rows and many, one and several tiles, blocks of k, odd sizes, short last groups; every type and layout.
TEST(Products, AreTheProductsOfTheKeptValues) {
  on_every_isa([] {
    const std::vector<ProductCase> shapes = {
        {0, 3, {4}},      {3, 0, {4}},        {2, 3, {0}},     {1, 1, {1}},         {1, 70, {33}},
        {5, 129, {100}},  {8, 64, {257}},     {9, 33, {50}},   {40, 500, {97}},     {300, 500, {65}},
        {17, 50, {4100}}, {10, 7, {0}},       {1, 17, {5003}}, {31, 40, {70}},      {64, 50, {90}},
        {95, 33, {40}},   {33, 70, {40, 31}}, {48, 200, {24}}, {4, 300, {20, 9}},   {130, 60, {1100, 5, 64}},
        {300, 1, {64}},   {257, 2, {20}},     {90, 8, {300}},  {70, 3, {256, 260}}, {40, 5, {90}},
        {2, 530, {70}},   {6, 70, {300, 20}}, {9, 8, {257}}};
    int turn = 0;  // large shapes have one layout for each type
    for (ProductCase c : shapes)
      for (DType b : {DType::f32, DType::bf16, DType::q8, DType::q4})
        for (bool bf16 : {false, true})
          for (int layout = 0; layout < 4; ++layout) {
            if (c.m * c.n > 10000 && layout != turn++ % 4) continue;
            c.b = b;
            c.trans_a = (layout & 1) != 0 && !is_grouped(b);
            c.trans_b = (layout & 2) == 0;
            c.a = layout == 1 || layout == 2 ? DType::bf16 : DType::f32;
            c.y = layout >= 2 && bf16 ? DType::bf16 : DType::f32;
            c.bias = layout != 1;
            check_products(c, bf16);
          }
  });
}

// Sums of a group are exact integers, so instructions that multiply bytes (AVX512-VNNI) change no bits.
TEST(Products, OfARowWithGroupsHaveTheSameBitsWithAnyAvx512) {
  if (best_isa() < Isa::avx512_bf16) GTEST_SKIP() << "needs AVX512-BF16";
  const Isa before = isa();
  for (const DType type : {DType::q8, DType::q4})
    for (const auto& [n, k] : {std::array<i64, 2>{3, 40}, {16, 32}, {70, 1000}}) {
      Operand a = operand(DType::f32, 1, k, false, 1, false), b = operand(type, k, n, true, 2, false);
      for (Operand* x : {&a, &b}) x->matrix.data = x->bytes.data();
      const auto product = [&](Isa i) {
        use_isa(i);
        std::vector<float> y(static_cast<std::size_t>(n), NAN);
        const Product p{.m = 1, .n = n, .terms = {{a.matrix, b.matrix, k}}, .y = y.data()};
        std::vector<float> room(static_cast<std::size_t>(products_workspace({&p, 1}, false)), NAN);
        products({&p, 1}, false, room);
        return y;
      };
      EXPECT_TRUE(same_bits(product(Isa::avx512), product(Isa::avx512_bf16)))
          << name_of(type) << ", " << n << " x " << k;
    }
  use_isa(before);
}

Product of_shape(i64 m, i64 n, i64 k, DType type) {
  const Matrix a{.type = type}, b{.type = type, .trans = true};
  return {.m = m, .n = n, .terms = {{a, b, k}}};
}

// Each path is taken on both sides of its limits.
TEST(Products, TakeTheirPathsUpToTheLimits) {
  struct Taken {
    i64 m, n, k;
    DType a, b;
    Unit unit;
    Path path;
  };
  constexpr DType kF32 = DType::f32, kBf16 = DType::bf16, kQ8 = DType::q8;
  constexpr i64 kLong = kLongSum, kShort = kLongSum - 1;
  for (const Taken& t : {Taken{kFewRows, 500, 64, kF32, kF32, Unit::f32, Path::rows},
                         {kFewRows + 1, 500, 64, kF32, kF32, Unit::f32, Path::tiles_of_transpose},
                         {kFewWidenedRows, 500, 64, kF32, kBf16, Unit::f32, Path::rows},
                         {kFewWidenedRows + 1, 500, 64, kF32, kQ8, Unit::f32, Path::tiles_of_transpose},
                         {kFewRows + 1, 500, 64, kBf16, kBf16, Unit::dot, Path::tiles_of_transpose},
                         {kFewGroupRows, 500, 64, kBf16, kQ8, Unit::dot, Path::rows},
                         {kFewGroupRows + 1, 500, 64, kBf16, kQ8, Unit::dot, Path::tiles},
                         {200, kFewColumns, kShort, kF32, kF32, Unit::f32, Path::rows_of_transpose},
                         {200, kFewColumns + 1, kShort, kF32, kF32, Unit::f32, Path::tiles_of_transpose},
                         {200, kFewRows, kLong, kF32, kF32, Unit::f32, Path::rows_of_transpose},
                         {200, kFewRows + 1, kLong, kF32, kF32, Unit::f32, Path::tiles},
                         {kTransposedRows, 500, 64, kF32, kF32, Unit::f32, Path::tiles_of_transpose},
                         {kTransposedRows + 1, 500, 64, kF32, kF32, Unit::f32, Path::tiles},
                         {kTransposedFullRows, 500, 64, kF32, kF32, Unit::f32, Path::tiles_of_transpose},
                         {kTransposedFullRows, 500, 64, kBf16, kBf16, Unit::amx, Path::tiles},
                         {kTransposedFullRows + 1, 500, 64, kF32, kF32, Unit::f32, Path::tiles}}) {
    Product p = of_shape(t.m, t.n, t.k, t.b);
    p.terms[0].a.type = t.a;
    EXPECT_EQ(static_cast<int>(path_of(p, t.unit)), static_cast<int>(t.path))
        << t.m << " x " << t.n << ", sums of " << t.k << ", " << name_of(t.b);
  }
  Product p = of_shape(kFewRows, 500, 64, DType::f32);
  p.terms[0].b.trans = false;
  EXPECT_EQ(path_of(p, Unit::f32), Path::columns);
  p = of_shape(500, 2, 64, DType::f32);
  p.terms[0].a.trans = true;
  EXPECT_EQ(path_of(p, Unit::f32), Path::columns_of_transpose);
}

// All elements of y are in one tile, and no thread computes much more than others.
TEST(Products, TilesAreEvenWork) {
  for (const auto& [m, n] :
       {std::array<i64, 2>{256, 2048}, {256, 5632}, {1024, 768}, {1000, 1000}, {60, 3000}})
    for (const i64 threads : {1, 2, 3, 4, 8})
      for (const Unit unit : {Unit::f32, Unit::dot, Unit::amx}) {
        const DType type = unit == Unit::f32 ? DType::f32 : DType::bf16;
        const Product p = of_shape(m, n, 700, type);
        const Tiles tiles = tiles_of(p, unit, path_of(p, unit), threads);
        std::vector<int> times(static_cast<std::size_t>(m * n));
        std::vector<i64> work(static_cast<std::size_t>(threads));
        for (i64 i = 0; i < tiles.count(); ++i) {
          const Tile t = tiles.tile(i);
          for (i64 r = t.row; r < t.row + t.rows; ++r)
            for (i64 c = t.column; c < t.column + t.columns; ++c)
              ++times[static_cast<std::size_t>(r * n + c)];
          EXPECT_LE(t.rows, tiles.rows.largest());
          EXPECT_LE(t.columns, tiles.columns.largest());
          *std::ranges::min_element(work) += t.rows * t.columns;
        }
        const std::string what = fmt::format("{} x {}, {} threads", m, n, threads);
        EXPECT_TRUE(std::ranges::all_of(times, [](int k) { return k == 1; })) << what;
        EXPECT_LE(std::ranges::max(work) * threads, m * n * 5 / 4) << what;
      }
}

TEST(Products, TheWorkspaceOfAStoredWeightIsEnoughForAnyRows) {
  const int before = threads();
  for (const int t : {1, 3}) {
    set_threads(t);
    for (const i64 n : {10, 500, 2048})
      for (const DType type : {DType::f32, DType::bf16, DType::q8, DType::q4})
        for (const bool bf16 : {false, true})
          for (const i64 m : {1, 9, 33, 48, 49, 64, 95, 96, 97, 130, 512, 700, 5000}) {
            Product p = of_shape(m, n, 1100, type);
            p.terms[0].a.type = DType::f32;
            for (const bool trans : {true, false}) {
              p.terms[0].b.trans = trans;
              EXPECT_LE(products_workspace({&p, 1}, bf16),
                        stored_product_workspace(n, 1100, type, trans, bf16))
                  << m << " x " << n << ", " << t << " threads" << (trans ? ", transposed" : "");
            }
          }
  }
  set_threads(before);
}

// Each sum has an order that depends on k alone: not on the tile that an element lies in.
TEST(Products, DoNotDependOnTiles) {
  on_every_isa([] {
    for (const auto& [m, n, k] :
         {std::array<i64, 3>{9, 100, 50}, {100, 90, 300}, {700, 900, 70}, {513, 40, 2500}})
      for (bool trans_a : {false, true})
        for (bool trans_b : {false, true})
          for (DType y : {DType::f32, DType::bf16}) {
            const Operand a = operand(DType::f32, m, k, trans_a, 1, false),
                          b = operand(DType::f32, k, n, trans_b, 2, false);
            const auto product = [&](i64 row, i64 rows, i64 column, i64 columns) {
              std::vector<std::byte> out(static_cast<std::size_t>(bytes_of(y, rows * columns)));
              Product p{
                  .m = rows, .n = columns, .terms = {{a.matrix, b.matrix, k}}, .y = out.data(), .type = y};
              p.terms[0].a.data = a.bytes.data() + row * (trans_a ? 4 : a.matrix.row);
              p.terms[0].b.data = b.bytes.data() + column * (trans_b ? b.matrix.row : 4);
              std::vector<float> room(static_cast<std::size_t>(products_workspace({&p, 1}, false)), NAN);
              products({&p, 1}, false, room);
              return out;
            };
            const std::vector<std::byte> all = product(0, m, 0, n);
            for (const auto& [row, column] : {std::array<i64, 2>{0, 0}, {m - 9, 1}, {m / 2 - 4, n - 31}}) {
              const std::vector<std::byte> part = product(row, 9, column, 30);
              const i64 bytes = bytes_of(y, 30);
              for (i64 r = 0; r < 9; ++r)
                EXPECT_EQ(
                    std::memcmp(part.data() + r * bytes, all.data() + bytes_of(y, (row + r) * n + column),
                                static_cast<std::size_t>(bytes)),
                    0)
                    << m << " " << n << " " << k << " row " << row + r;
            }
          }
  });
}

}  // namespace
}  // namespace redco::kernels

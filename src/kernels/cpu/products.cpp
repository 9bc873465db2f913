#include "kernels/cpu/products.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/matrix.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/product_tiles.h"

namespace redco::kernels {
namespace {

// --- Products of few rows, whose speed is that of reading b ------------------------------------------------

// One row is multiplied with groups in words (isa/group_row.cpp).
bool in_words(i64 m, const Term& t) { return m == 1 && is_grouped(t.b.type); }

// Whether the left operand of a term does not lie as rows of fp32, and is copied so.
bool copied(const Term& t) { return t.a.type != DType::f32 || t.a.trans; }

// Elements of the workspace that hold the left operand of a term: rows of fp32, or a row of words, their
// scales, their offsets and the row of fp32.
i64 room_of(i64 m, const Term& t) {
  const i64 wide = copied(t) ? m * t.k : 0;
  return in_words(m, t) ? groups_in(t.k) * (kGroup / 2 + 2) + wide : wide;
}
float* scales_in(float* room, const Term& t) { return room + groups_in(t.k) * (kGroup / 2); }
i32* offsets_in(float* room, const Term& t) {
  return reinterpret_cast<i32*>(scales_in(room, t) + groups_in(t.k));
}
void fill_room(float* room, i64 m, const Term& t) {
  const bool words = in_words(m, t);
  float* const wide = words ? scales_in(room, t) + 2 * groups_in(t.k) : room;
  if (t.a.trans) {
    for (i64 r = 0; r < m; ++r)
      for (i64 i = 0; i < t.k; ++i) wide[r * t.k + i] = *elements<float>(t.a, i, r);
  } else if (copied(t)) {
    for (i64 r = 0; r < m; ++r) widen(at(t.a, r, 0), t.a.type, t.k, wide + r * t.k);
  }
  if (!words) return;
  auto* const row = reinterpret_cast<std::int16_t*>(room);
  REDCO_ISA_CALL(to_words(copied(t) ? wide : elements<float>(t.a, 0, 0), t.k, row, scales_in(room, t)));
  if (t.b.type == DType::q4) REDCO_ISA_CALL(split_words(groups_in(t.k), row, offsets_in(room, t)));
}

// Rows of a stored matrix: y[m, n] = x[m, k] w[n, k]^T, of the rows of x from `row` on and those of w from
// `first` on.
// before: 1 adds to y, 0 doesn't; a matrix of groups doesn't add.
void few_rows(i64 row, i64 m, i64 n, const Term& t, float* room, i64 first, float before, float* y, i64 ld) {
  const Matrix& w = t.b;
  const i64 k = t.k;
  const float* const x = (copied(t) ? room : elements<float>(t.a, 0, 0)) + row * k;
  if (w.type == DType::f32)
    return REDCO_ISA_CALL(
        rows_times_bt(m, n, k, 1.0f, x, k, elements<float>(w, first, 0), w.row / 4, before, y, ld));
  if (w.type == DType::bf16)
    return REDCO_ISA_CALL(
        rows_times_bt(m, n, k, 1.0f, x, k, elements<bf16>(w, first, 0), w.row / 2, before, y, ld));
  visit_groups(w.type, [&](auto zero) {
    using G = decltype(zero);
    const G* const groups = elements<G>(w, first, 0);
    if (!in_words(m, t)) return REDCO_ISA_CALL(rows_times_groups(m, n, k, x, k, groups, y, ld));
    const RowOfWords words{reinterpret_cast<const std::int8_t*>(room), scales_in(room, t),
                           offsets_in(room, t)};
    REDCO_ISA_CALL(row_times_groups(n, groups_in(k), words, groups, y));
  });
}

// Tiles of a matrix that is stored in another type widen and pack all of it, which takes longer than the
// products of so many rows. They are done kFewRows at a time, while a part of the matrix is in the cache.
i64 most_few_rows(DType b, Unit unit) {
  if (unit == Unit::f32) return b == DType::f32 ? kFewRows : 4 * kFewRows;
  return is_grouped(b) ? 2 * kFewRows : kFewRows;
}

// The layout that products of few rows need: b by rows, which is stored as its transpose, and groups in the
// first term only; or b by columns, in fp32.
enum class Few : std::uint8_t { no, by_rows, by_columns };
Few few_rows_of(const Product& p, Unit unit) {
  if (p.terms.empty()) return Few::no;
  const Matrix& b = p.terms[0].b;
  bool by_columns = p.m <= kFewRows, by_rows = p.m <= most_few_rows(b.type, unit);
  for (const Term& t : p.terms) {
    if ((t.a.trans && (p.m > kFewRows || t.a.type != DType::f32)) || t.k == 0) return Few::no;
    by_columns = by_columns && !t.b.trans && t.b.type == DType::f32;
    by_rows = by_rows && t.b.trans && (&t == &p.terms[0] || !is_grouped(t.b.type));
  }
  return by_rows ? Few::by_rows : by_columns ? Few::by_columns : Few::no;
}
i64 few_rows_room(const Product& p) {
  i64 n = 0;
  for (const Term& t : p.terms) n += room_of(p.m, t);
  return n;
}

// --- All pieces of all products --------------------------------------------------------------------------

// How a product is done: its pieces are [first, first + count) of all.
struct Work {
  const Product* product;
  Few few = Few::no;
  Product of_few;  // y, or y^T, which has few rows
  bool transposed = false;
  Tiles tiles;
  i64 first = 0, count = 0;
  float* few_room = nullptr;
};
using Works = SmallVector<Work, 3>;

// Few rows or columns?
Work work_of(const Product& p, Unit unit) {
  Work w{.product = &p};
  w.few = few_rows_of(p, unit);
  if (w.few != Few::no) {
    w.of_few = p;
    return w;
  }
  // Groups are read as a right operand only. To add the lanes of many short dot products takes longer than to
  // pack their operands.
  constexpr i64 kFewColumns = 2, kShort = 256;
  const bool few =
      p.n <= kFewColumns ||
      (p.n <= kFewRows && std::ranges::all_of(p.terms, [](const Term& t) { return t.k >= kShort; }));
  if (!few || std::ranges::any_of(p.terms, [](const Term& t) { return is_grouped(t.b.type); })) return w;
  w.of_few = transpose_of(p);
  w.few = few_rows_of(w.of_few, unit);
  w.transposed = w.few != Few::no;
  return w;
}

constexpr i64 kRowsOfB = 64, kColumnsOfB = 256;

// Where the sums of a piece go: to y, if they lie there as they are, or else to `own`.
struct Sums {
  float* to;
  i64 ld;
  bool in_y;
};
Sums sums_at(const Work& w, i64 row, i64 column, i64 columns, float* own) {
  if (w.product->type != DType::f32 || (w.transposed && w.of_few.m > 1)) return {own, columns, false};
  return {static_cast<float*>(w.product->y) + row * w.of_few.n + column, w.of_few.n, true};
}

// Adds the bias to the sums of rows [row, row + rows) and columns [column, column + columns), and writes them
// to y unless they are there.
void finish(const Work& w, i64 row, i64 rows, i64 column, i64 columns, const Sums& sums) {
  const Product& p = *w.product;
  if (sums.in_y && !p.bias) return;
  const auto biased = [&p](float sum, i64 c) { return p.bias ? sum + p.bias[c] : sum; };
  if (!w.transposed) {
    for (i64 r = 0; r < rows; ++r) {
      float* const line = sums.to + r * sums.ld;
      for (i64 c = 0; c < columns; ++c) line[c] = biased(line[c], column + c);
      if (p.type == DType::bf16)
        REDCO_ISA_CALL(to_bf16(line, reinterpret_cast<u16*>(y_at<bf16>(p, row + r, column)), columns));
    }
    return;
  }
  std::array<float, kFewRows> line;  // NOLINT: written below
  for (i64 c = 0; c < columns; ++c) {
    float* const to = p.type == DType::f32 ? y_at<float>(p, column + c, row) : line.data();
    for (i64 r = 0; r < rows; ++r) to[r] = biased(sums.to[r * sums.ld + c], row + r);
    if (p.type == DType::bf16)
      REDCO_ISA_CALL(to_bf16(to, reinterpret_cast<u16*>(y_at<bf16>(p, column + c, row)), rows));
  }
}

// One piece of a product of few rows by rows of b.
void piece_by_rows(const Work& w, i64 piece) {
  const Product& p = w.of_few;
  const i64 first = piece * kRowsOfB, last = std::min(first + kRowsOfB, p.n);
  const i64 passes = ceil_div(p.m, kFewRows);
  // Several passes find these rows of b in the L2 cache. A multiple of the rows that are read together.
  constexpr i64 kUnit = 12, kNearBytes = i64{1} << 18;
  const i64 near =
      passes == 1 ? kRowsOfB : std::clamp(kNearBytes / p.terms[0].b.row / kUnit * kUnit, kUnit, kRowsOfB);
  std::array<float, kFewRows * kRowsOfB> own;  // NOLINT: written below
  for (i64 j = first; j < last; j += near) {
    const i64 n = std::min(near, last - j);
    for (i64 i = 0; i < passes; ++i) {
      const i64 r = i * p.m / passes, rows = (i + 1) * p.m / passes - r;
      const Sums sums = sums_at(w, r, j, n, own.data());
      float* room = w.few_room;
      for (const Term& t : p.terms) {
        few_rows(r, rows, n, t, room, j, &t == &p.terms[0] ? 0.0f : 1.0f, sums.to, sums.ld);
        room += room_of(p.m, t);
      }
      finish(w, r, rows, j, n, sums);
    }
  }
}

// One piece of a product of few rows by columns of the terms' b.
void piece_by_columns(const Work& w, i64 piece) {
  const Product& p = w.of_few;
  const i64 j = piece * kColumnsOfB, n = std::min(kColumnsOfB, p.n - j);
  std::array<float, kFewRows * kColumnsOfB> own;  // NOLINT: written below
  const Sums sums = sums_at(w, 0, j, n, own.data());
  const float* room = w.few_room;
  constexpr i64 kDeep = 64;  // rows of b: those of a piece stay in the L2 cache, and their pages in the TLB
  float before = 0;
  for (const Term& t : p.terms) {
    const float* const x = copied(t) ? room : elements<float>(t.a, 0, 0);
    for (i64 i = 0; i < t.k; i += kDeep) {
      REDCO_ISA_CALL(rows_times_b(p.m, n, std::min(kDeep, t.k - i), 1.0f, x + i, t.k,
                                  elements<float>(t.b, i, j), t.b.row / 4, before, sums.to, sums.ld));
      before = 1;
    }
    room += room_of(p.m, t);
  }
  finish(w, 0, p.m, j, n, sums);
}

Works works_of(std::span<const Product> all, bool bf16) {
  Works works;
  i64 first = 0;
  for (const Product& p : all) {
    if (p.m <= 0 || p.n <= 0) continue;
    Work w = work_of(p, unit_of(bf16));
    w.first = first;
    if (w.few != Few::no) {
      w.count = ceil_div(w.of_few.n, w.few == Few::by_rows ? kRowsOfB : kColumnsOfB);
    } else {
      w.tiles = tiles_of(p, unit_of(bf16), omp_get_max_threads());
      w.count = w.tiles.count();
    }
    first += w.count;
    works.push_back(w);
  }
  return works;
}

// Rooms of the workspace: one for each thread. Those of products of few rows are empty.
struct Space {
  i64 fixed = 0, room = 0, rooms = 1;
};
Space space_of(const Works& works) {
  Space s;
  i64 tiles = 0;
  for (const Work& w : works) {
    if (w.few != Few::no) {
      s.fixed += few_rows_room(w.of_few);
    } else {
      s.room = std::max(s.room, w.tiles.room());
      tiles += w.count;
    }
  }
  const i64 threads = omp_get_max_threads();
  s.rooms = tiles > 0 ? std::min(tiles, threads) : threads;
  return s;
}

}  // namespace

i64 products_workspace(std::span<const Product> all, bool bf16) {
  const Space s = space_of(works_of(all, bf16));
  return s.fixed + s.room * s.rooms;
}

i64 stored_product_workspace(i64 n, i64 k, DType b, bool bf16) {
  if (n <= 0 || k <= 0) return 0;
  const auto of_rows = [&](i64 m) {
    return Product{.m = m, .n = n, .terms = {{.a = {}, .b = {.type = b, .trans = true}, .k = k}}};
  };
  // Of each kind of tiles, those for one thread with the most rows have the largest rooms; any number of rows
  // has at most one for each thread.
  const i64 threads = omp_get_max_threads();
  i64 tiles = 0;
  for (const i64 m : {kTransposedRows, kTransposedFullRows, i64{1} << 20})
    tiles = std::max(tiles, tiles_of(of_rows(m), unit_of(bf16), 1).room() * threads);
  const Product many = of_rows(i64{1} << 20);
  const Work w = work_of(many, unit_of(bf16));
  return std::max({tiles, few_rows_room(of_rows(1)), few_rows_room(w.of_few)});
}

void products(std::span<const Product> all, bool bf16, std::span<float> workspace) {
  Works works = works_of(all, bf16);
  if (works.empty()) return;
  const Space space = space_of(works);
  REDCO_CHECK(space.fixed + space.room * space.rooms <= static_cast<i64>(workspace.size()),
              "products need {} + {} x {} elements of workspace, and got {}", space.fixed, space.room,
              space.rooms, workspace.size());
  float* fixed = workspace.data();
  i64 work = 0, pieces = 0;
  for (Work& w : works) {
    const Product& p = w.few != Few::no ? w.of_few : *w.product;
    i64 k = 0;
    for (const Term& t : p.terms) k += t.k;
    work += w.few != Few::no ? p.n * k : p.m * p.n * std::min<i64>(k, i64{1} << 20) / 8;
    pieces += w.count;
    if (w.few == Few::no) continue;
    w.few_room = fixed;
    for (const Term& t : p.terms) {
      fill_room(fixed, p.m, t);
      fixed += room_of(p.m, t);
    }
  }
  const auto piece = [&](i64 i, i64 room) {
    const Work* w = &works.back();
    while (w->first > i) --w;
    i -= w->first;
    if (w->few == Few::by_rows) return piece_by_rows(*w, i);
    if (w->few == Few::by_columns) return piece_by_columns(*w, i);
    float* const own = workspace.data() + space.fixed + room * space.room;
    multiply_tile(*w->product, unit_of(bf16), w->tiles.tile(i), w->tiles, own);
  };
  // Pieces of few rows take equal times of some microseconds: each thread gets those that follow one another,
  // because to ask for each piece costs a sixth of the time.
  const bool few = std::ranges::all_of(works, [](const Work& w) { return w.few != Few::no; });
  if (few) return for_each_reading(pieces, work, [&](i64 i) { piece(i, 0); });
  for_each_in_rooms(space.rooms, pieces, work, piece);
}

}  // namespace redco::kernels

#include "kernels/cpu/products.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "kernels/cpu/bf16_tiles.h"
#include "kernels/cpu/blas.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/groups.h"
#include "kernels/cpu/isa/ranges.h"
#include "kernels/cpu/pool.h"
#include "kernels/isa.h"

namespace redco::kernels {
namespace {

// Elements along k that are widened or packed together. In fp32, 384 columns of them are 3 MiB, for the L2
// cache.
constexpr i64 kWideK = 2048, kPairedK = 1024;
static_assert(kWideK % kGroup == 0 && kPairedK % kGroup == 0);

// Where element (row, column) of the stored matrix lies; columns of groups are not cut.
const std::byte* at(const Matrix& x, i64 row, i64 column) {
  return x.data + row * x.row + bytes_of(x.type, column);
}
template <class T>
const T* elements(const Matrix& x, i64 row, i64 column) {
  return reinterpret_cast<const T*>(at(x, row, column));
}

void widen(const std::byte* row, DType type, i64 n, float* to) {
  if (type == DType::f32) {
    std::copy_n(reinterpret_cast<const float*>(row), n, to);
  } else if (type == DType::bf16) {
    REDCO_ISA_CALL(from_bf16(reinterpret_cast<const u16*>(row), to, n));
  } else {
    visit_groups(type, [&](auto zero) {
      using G = decltype(zero);
      REDCO_ISA_CALL(from_groups(reinterpret_cast<const G*>(row), to, n));
    });
  }
}

// The rows and columns of a product that one piece of work computes, and the block [p, p + deep) of k.
struct Tile {
  i64 row, rows, column, columns;
};
struct Block {
  i64 p, deep;
};

// The part of a stored operand that a tile reads: `lines` stored rows of `length` elements.
struct Part {
  i64 row, column, lines, length;
};
Part left_part(const Matrix& a, const Tile& t, const Block& b) {
  return a.trans ? Part{b.p, t.row, b.deep, t.rows} : Part{t.row, b.p, t.rows, b.deep};
}
Part right_part(const Matrix& b, const Tile& t, const Block& k) {
  return b.trans ? Part{t.column, k.p, t.columns, k.deep} : Part{k.p, t.column, k.deep, t.columns};
}

struct Lines {
  const float* data;
  i64 ld;
};
// A part in fp32: where it lies, or widened into `room`.
Lines as_f32(const Matrix& x, const Part& part, float* room) {
  if (x.type == DType::f32)
    return {elements<float>(x, part.row, part.column), x.row / static_cast<i64>(sizeof(float))};
  for (i64 i = 0; i < part.lines; ++i)
    widen(at(x, part.row + i, part.column), x.type, part.length, room + i * part.length);
  return {room, part.length};
}

bool all_f32(const Term& t) { return t.a.type == DType::f32 && t.b.type == DType::f32; }

// The sizes of a tile, and of a room of the workspace, in floats.
struct Rooms {
  Tiling tiling;
  i64 left = 0, right = 0, wide = 0, sums = 0;
  i64 size() const { return left + right + wide + sums; }
};

i64 blocks_in(const Product& p, i64 deep) {
  i64 n = 0;
  for (const Term& t : p.terms) n += ceil_div(t.k, deep);
  return n;
}

// Tiles whose columns do not cut groups along the columns of b.
Tiling with_whole_groups(Tiling t, const Product& p) {
  bool cut = false;
  for (const Term& term : p.terms) cut = cut || (is_grouped(term.b.type) && !term.b.trans);
  if (cut) t.cols = std::min(p.n, ceil_div(t.cols, kGroup) * kGroup);
  return t;
}

Rooms rooms_f32(const Product& p) {
  Rooms r{with_whole_groups(tiling_of(p.m, p.n), p)};
  for (const Term& t : p.terms) {
    const i64 deep = std::min(t.k, kWideK);
    if (t.a.type != DType::f32) r.left = std::max(r.left, r.tiling.rows * deep);
    if (t.b.type != DType::f32) r.right = std::max(r.right, r.tiling.cols * deep);
  }
  if (p.type != DType::f32) r.sums = r.tiling.rows * r.tiling.cols;
  return r;
}

// Tiles are larger than with BLAS where there are many, because each packs both operands.
Tiling paired_tiling(i64 m, i64 n) {
  constexpr i64 kWanted = 4, kSmallest = 96;
  Tiling t{std::min<i64>(512, m), std::min<i64>(8 * kMicroColumns, n)};
  while (ceil_div(m, t.rows) * ceil_div(n, t.cols) < kWanted && std::max(t.rows, t.cols) > kSmallest) {
    const bool down = t.rows >= t.cols;
    i64& side = down ? t.rows : t.cols;
    side = ceil_div(ceil_div(side, 2), kMicroColumns) * kMicroColumns;
  }
  return t;
}

Rooms rooms_paired(const Product& p) {
  Rooms r{with_whole_groups(paired_tiling(p.m, p.n), p)};
  for (const Term& t : p.terms) {
    const i64 deep = std::min(t.k, kPairedK);
    r.left = std::max(r.left, avx512_bf16::left_size(r.tiling.rows, deep));
    r.right = std::max(r.right, avx512_bf16::right_size(r.tiling.cols, deep));
    if (is_grouped(t.b.type)) r.wide = std::max(r.wide, r.tiling.cols * deep);
  }
  if (p.type != DType::f32 && blocks_in(p, kPairedK) != 1) r.sums = r.tiling.rows * r.tiling.cols;
  return r;
}

bool pairs(bool bf16) { return bf16 && isa() == Isa::avx512_bf16; }
Rooms rooms_of(const Product& p, bool bf16) { return pairs(bf16) ? rooms_paired(p) : rooms_f32(p); }

template <class T>
T* y_at(const Product& p, i64 row, i64 column) {
  return static_cast<T*>(p.y) + row * p.n + column;
}

// Adds the bias to `rows` rows of sums, columns [column, column + columns), and writes them to y if they are
// not there.
void finish(const Product& p, i64 row, i64 rows, i64 column, i64 columns, float* sums, i64 ld) {
  for (i64 r = 0; r < rows; ++r) {
    float* const line = sums + r * ld;
    if (p.bias)
      for (i64 c = 0; c < columns; ++c) line[c] += p.bias[column + c];
    if (p.type == DType::bf16)
      REDCO_ISA_CALL(to_bf16(line, reinterpret_cast<u16*>(y_at<bf16>(p, row + r, column)), columns));
  }
}

void tile_f32(const Product& p, const Tile& t, const Rooms& r, float* room) {
  float *const left = room, *const right = left + r.left, *const own = right + r.right + r.wide;
  const bool direct = p.type == DType::f32;
  float* const sums = direct ? y_at<float>(p, t.row, t.column) : own;
  const i64 ld = direct ? p.n : t.columns;
  bool first = true;
  for (const Term& term : p.terms) {
    const i64 deepest = all_f32(term) ? term.k : kWideK;
    for (Block b{0, 0}; b.p < term.k; b.p += b.deep, first = false) {
      b.deep = std::min(deepest, term.k - b.p);
      const Lines x = as_f32(term.a, left_part(term.a, t, b), left);
      const Lines w = as_f32(term.b, right_part(term.b, t, b), right);
      cblas_gemm(term.a.trans, term.b.trans, t.rows, t.columns, b.deep, 1.0f, x.data, std::max<i64>(x.ld, 1),
                 w.data, std::max<i64>(w.ld, 1), first ? 0.0f : 1.0f, sums, ld);
    }
  }
  if (first)
    for (i64 i = 0; i < t.rows; ++i) std::fill_n(sums + i * ld, t.columns, 0.0f);
  if (p.bias || !direct) finish(p, t.row, t.rows, t.column, t.columns, sums, ld);
}

// A part of the left operand in pairs: where it lies, if it may be read there.
LeftPairs left_pairs(const Matrix& a, const Tile& t, const Block& b, u32* room) {
  const Part part = left_part(a, t, b);
  if (a.type == DType::bf16) {
    const bf16* const x = elements<bf16>(a, part.row, part.column);
    const bool whole = b.deep % 2 == 0 && a.row % 4 == 0 && reinterpret_cast<std::uintptr_t>(x) % 4 == 0;
    if (!a.trans && whole) return {reinterpret_cast<const u32*>(x), a.row / 4, 1};
    return avx512_bf16::pack_left(x, a.row / 2, a.trans, t.rows, b.deep, room);
  }
  REDCO_CHECK(a.type == DType::f32, "a left operand of type {}", name_of(a.type));
  return avx512_bf16::pack_left(elements<float>(a, part.row, part.column), a.row / 4, a.trans, t.rows, b.deep,
                                room);
}

void pack_right(const Matrix& b, const Tile& t, const Block& k, float* wide, u32* to) {
  const Part part = right_part(b, t, k);
  if (b.type == DType::bf16)
    return avx512_bf16::pack_right(elements<bf16>(b, part.row, part.column), b.row / 2, b.trans, t.columns,
                                   k.deep, to);
  const Lines x = as_f32(b, part, wide);
  avx512_bf16::pack_right(x.data, x.ld, b.trans, t.columns, k.deep, to);
}

void tile_paired(const Product& p, const Tile& t, const Rooms& r, float* room) {
  u32* const left = reinterpret_cast<u32*>(room);
  u32* const right = left + r.left;
  float *const wide = room + r.left + r.right, *const own = wide + r.wide;
  const bool direct = p.type == DType::f32;
  float* const sums = direct ? y_at<float>(p, t.row, t.column) : own;
  const i64 ld = direct ? p.n : t.columns;
  const i64 blocks = blocks_in(p, kPairedK);
  if (blocks == 0) return tile_f32(p, t, r, room);
  i64 done = 0;
  for (const Term& term : p.terms)
    for (Block b{0, 0}; b.p < term.k; b.p += b.deep) {
      b.deep = std::min(kPairedK, term.k - b.p);
      const LeftPairs a = left_pairs(term.a, t, b, left);
      pack_right(term.b, t, b, wide, right);
      TileOutput out;
      if (done > 0) {
        out.before = sums;
        out.ld_before = ld;
      }
      if (++done == blocks) {
        out.bias = p.bias ? p.bias + t.column : nullptr;
        out.bf16 = !direct;
        out.y = direct ? static_cast<void*>(sums) : y_at<bf16>(p, t.row, t.column);
        out.ld = p.n;
      } else {
        out.y = sums;
        out.ld = ld;
      }
      avx512_bf16::multiply(t.rows, t.columns, b.deep, a, right, out);
    }
}

// --- Products of few rows, whose speed is that of reading b ------------------------------------------------

// One row is multiplied with groups in words (isa/group_row.cpp).
bool in_words(i64 m, const Term& t) { return m == 1 && is_grouped(t.b.type); }

// Elements of the workspace that hold the left operand of a term: rows widened to fp32, or a row of words,
// their scales and the widened row.
i64 room_of(i64 m, const Term& t) {
  const i64 wide = t.a.type != DType::f32 ? m * t.k : 0;
  return in_words(m, t) ? groups_in(t.k) * (kGroup / 2 + 1) + wide : wide;
}
float* scales_in(float* room, const Term& t) { return room + groups_in(t.k) * (kGroup / 2); }
void fill_room(float* room, i64 m, const Term& t) {
  const bool words = in_words(m, t);
  float* const wide = words ? scales_in(room, t) + groups_in(t.k) : room;
  if (t.a.type != DType::f32)
    for (i64 r = 0; r < m; ++r) widen(at(t.a, r, 0), t.a.type, t.k, wide + r * t.k);
  if (words)
    REDCO_ISA_CALL(to_words(t.a.type == DType::f32 ? elements<float>(t.a, 0, 0) : wide, t.k,
                            reinterpret_cast<std::int16_t*>(room), scales_in(room, t)));
}

// Rows of a stored matrix: y[m, n] = x[m, k] w[n, k]^T, of the rows of w from `first` on.
void few_rows(i64 m, i64 n, const Term& t, float* room, i64 first, float* y, i64 ld) {
  const Matrix& w = t.b;
  const i64 k = t.k;
  const float* const x = t.a.type == DType::f32 ? elements<float>(t.a, 0, 0) : room;
  if (w.type == DType::f32)
    return REDCO_ISA_CALL(
        rows_times_bt(m, n, k, 1.0f, x, k, elements<float>(w, first, 0), w.row / 4, 0.0f, y, ld));
  if (w.type == DType::bf16)
    return REDCO_ISA_CALL(
        rows_times_bt(m, n, k, 1.0f, x, k, elements<bf16>(w, first, 0), w.row / 2, 0.0f, y, ld));
  visit_groups(w.type, [&](auto zero) {
    using G = decltype(zero);
    const G* const groups = elements<G>(w, first, 0);
    if (!in_words(m, t)) return REDCO_ISA_CALL(rows_times_groups(m, n, k, x, k, groups, y, ld));
    const RowOfWords row{reinterpret_cast<const std::int16_t*>(room), scales_in(room, t)};
    REDCO_ISA_CALL(row_times_groups(n, groups_in(k), row, groups, y));
  });
}

// The layout that products of few rows need: x in rows, and w by rows; or w by columns, in fp32.
enum class Few : std::uint8_t { no, by_rows, by_columns };
Few few_rows_of(const Product& p) {
  if (p.m > kFewRows || p.terms.empty()) return Few::no;
  bool by_rows = p.terms.size() == 1, by_columns = true;
  for (const Term& t : p.terms) {
    if (t.a.trans || t.k == 0) return Few::no;
    by_rows = by_rows && t.b.trans;
    by_columns = by_columns && !t.b.trans && t.b.type == DType::f32;
  }
  return by_rows ? Few::by_rows : by_columns ? Few::by_columns : Few::no;
}
i64 few_rows_room(const Product& p) {
  i64 n = 0;
  for (const Term& t : p.terms) n += room_of(p.m, t);
  return n;
}

constexpr i64 kRowsOfB = 64, kColumnsOfB = 256;

// One piece of a product of few rows; room: of all its terms.
void few_rows_piece(const Product& p, Few few, i64 piece, float* room) {
  const i64 step = few == Few::by_rows ? kRowsOfB : kColumnsOfB;
  const i64 j = piece * step, n = std::min(step, p.n - j);
  std::array<float, kFewRows * kColumnsOfB> own;  // NOLINT: written below
  const bool direct = p.type == DType::f32;
  float* const y = direct ? y_at<float>(p, 0, j) : own.data();
  const i64 ld = direct ? p.n : n;
  bool first = true;
  for (const Term& t : p.terms) {
    if (few == Few::by_rows) {
      few_rows(p.m, n, t, room, j, y, ld);
    } else {
      const float* const x = t.a.type == DType::f32 ? elements<float>(t.a, 0, 0) : room;
      REDCO_ISA_CALL(rows_times_b(p.m, n, t.k, 1.0f, x, t.k, elements<float>(t.b, 0, j), t.b.row / 4,
                                  first ? 0.0f : 1.0f, y, ld));
    }
    room += room_of(p.m, t);
    first = false;
  }
  if (p.bias || !direct) finish(p, 0, p.m, j, n, y, ld);
}

// --- All pieces of all products --------------------------------------------------------------------------

// How a product is done: its pieces are [first, first + count) of all.
struct Work {
  const Product* product;
  Few few;
  Rooms rooms;
  i64 first, count;
  float* few_room = nullptr;
};
using Works = SmallVector<Work, 3>;

Works works_of(std::span<const Product> all, bool bf16) {
  Works works;
  i64 first = 0;
  for (const Product& p : all) {
    if (p.m <= 0 || p.n <= 0) continue;
    Work w{&p, few_rows_of(p), {}, first, 0};
    if (w.few != Few::no) {
      w.count = ceil_div(p.n, w.few == Few::by_rows ? kRowsOfB : kColumnsOfB);
    } else {
      w.rooms = rooms_of(p, bf16);
      w.count = ceil_div(p.m, w.rooms.tiling.rows) * ceil_div(p.n, w.rooms.tiling.cols);
    }
    first += w.count;
    works.push_back(w);
  }
  return works;
}

// Rooms of the workspace: one for each thread, if tiles need any.
struct Space {
  i64 fixed = 0, room = 0, rooms = 1;
};
Space space_of(const Works& works) {
  Space s;
  i64 tiles = 0;
  for (const Work& w : works) {
    if (w.few != Few::no) {
      s.fixed += few_rows_room(*w.product);
    } else {
      s.room = std::max(s.room, w.rooms.size());
      tiles += w.count;
    }
  }
  s.rooms = std::max<i64>(1, std::min<i64>(tiles, omp_get_max_threads()));
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
  // Tiles with the most rows have the largest rooms; any number of rows has at most one for each thread.
  const i64 tiles = rooms_of(of_rows(i64{1} << 20), bf16).size() * omp_get_max_threads();
  return std::max(tiles, few_rows_room(of_rows(1)));
}

void products(std::span<const Product> all, bool bf16, std::span<float> workspace) {
  Works works = works_of(all, bf16);
  if (works.empty()) return;
  const Space space = space_of(works);
  float* fixed = workspace.data();
  i64 work = 0, pieces = 0;
  bool rooms_needed = false;
  for (Work& w : works) {
    const Product& p = *w.product;
    i64 k = 0;
    for (const Term& t : p.terms) k += t.k;
    work += w.few != Few::no ? p.n * k : p.m * p.n * std::min<i64>(k, i64{1} << 20) / 8;
    pieces += w.count;
    rooms_needed = rooms_needed || w.rooms.size() > 0;
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
    const Product& p = *w->product;
    i -= w->first;
    if (w->few != Few::no) return few_rows_piece(p, w->few, i, w->few_room);
    // Tiles are numbered down the columns, so that concurrent threads share the columns of b.
    const Tiling& t = w->rooms.tiling;
    const i64 down = ceil_div(p.m, t.rows), r = i % down * t.rows, c = i / down * t.cols;
    const Tile tile{r, std::min(t.rows, p.m - r), c, std::min(t.cols, p.n - c)};
    float* const own = workspace.data() + space.fixed + room * space.room;
    if (pairs(bf16)) {
      tile_paired(p, tile, w->rooms, own);
    } else {
      tile_f32(p, tile, w->rooms, own);
    }
  };
  if (rooms_needed) {
    for_each_in_rooms(space.rooms, pieces, work, piece);
  } else {
    for_each_dynamic(pieces, work, [&](i64 i) { piece(i, 0); });
  }
}

}  // namespace redco::kernels

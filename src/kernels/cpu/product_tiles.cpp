#include "kernels/cpu/product_tiles.h"

#include "base/error.h"
#include "kernels/cpu/bf16_tiles.h"
#include "kernels/cpu/matrix.h"

namespace redco::kernels {
namespace {

// A block [p, p + deep) of k, whose operands are packed together. Blocks of a k have about equal sizes, and
// cut no groups.
struct Block {
  i64 p, deep;
};
i64 depth_of(i64 k) {
  constexpr i64 kDeepest = 1024;  // the panel of the right operand (196 KB of fp32) stays in the L2 cache
  static_assert(kDeepest % kGroup == 0);
  const i64 blocks = ceil_div(std::max<i64>(k, 1), kDeepest);
  return ceil_div(ceil_div(k, blocks), kGroup) * kGroup;
}
i64 blocks_in(const Product& p) {
  i64 n = 0;
  for (const Term& t : p.terms)
    if (t.k > 0) n += ceil_div(t.k, depth_of(t.k));
  return n;
}

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

// The two ways to multiply tiles: packed operands of E, and the products of tiles of them.
struct InF32 {
  using E = float;
  static void add_rooms(Tiles& r, const Term& t, i64 deep) {
    const bool widened = t.a.type != DType::f32;
    // A tile reads its left operand for each panel of columns. Rows that are some KB apart share few sets of
    // the L1 cache: with 3072 columns in a row that halves the speed, and to pack it costs 5 %.
    constexpr i64 kFewColumns = 2 * kTileUnit;
    r.packs_left = r.columns > kFewColumns;
    if (t.a.trans || r.packs_left) r.left = std::max(r.left, (r.rows + kTileUnit) * deep);
    if (widened) r.wide_left = std::max(r.wide_left, r.rows * deep);
    r.right = std::max(r.right, (r.columns + kTileUnit) * deep);
    if (t.b.type != DType::f32) r.wide_right = std::max(r.wide_right, r.columns * deep);
  }
  static Left<E> left(const Matrix& a, const Part& part, const Tiles& tiles, i64 rows, i64 deep, float* wide,
                      E* to) {
    const Lines x = as_f32(a, part, wide);
    if (!a.trans && !tiles.packs_left) return {x.data, x.ld, 1};
    return REDCO_ISA_CALL(pack_left(x.data, x.ld, a.trans, rows, deep, to));
  }
  static void right(const Matrix& b, const Part& part, i64 columns, i64 deep, float* wide, E* to) {
    const Lines x = as_f32(b, part, wide);
    REDCO_ISA_CALL(pack_right(x.data, x.ld, b.trans, columns, deep, to));
  }
  static void multiply(i64 m, i64 n, i64 k, const Left<E>& a, const E* b, const TileOutput& out) {
    REDCO_ISA_CALL(multiply_tile(m, n, k, a, b, out));
  }
};

struct InPairs {
  using E = u32;
  static void add_rooms(Tiles& r, const Term& t, i64 deep) {
    r.left = std::max(r.left, avx512_bf16::left_size(r.rows, deep));
    r.right = std::max(r.right, avx512_bf16::right_size(r.columns, deep));
    if (is_grouped(t.b.type)) r.wide_right = std::max(r.wide_right, r.columns * deep);
  }
  static Left<E> left(const Matrix& a, const Part& part, const Tiles&, i64 rows, i64 deep, float*, E* to) {
    if (a.type == DType::bf16) {
      const bf16* const x = elements<bf16>(a, part.row, part.column);
      const bool whole = deep % 2 == 0 && a.row % 4 == 0 && reinterpret_cast<std::uintptr_t>(x) % 4 == 0;
      if (!a.trans && whole) return {reinterpret_cast<const u32*>(x), a.row / 4, 1};
      return avx512_bf16::pack_left(x, a.row / 2, a.trans, rows, deep, to);
    }
    REDCO_CHECK(a.type == DType::f32, "a left operand of type {}", name_of(a.type));
    return avx512_bf16::pack_left(elements<float>(a, part.row, part.column), a.row / 4, a.trans, rows, deep,
                                  to);
  }
  static void right(const Matrix& b, const Part& part, i64 columns, i64 deep, float* wide, E* to) {
    if (b.type == DType::bf16)
      return avx512_bf16::pack_right(elements<bf16>(b, part.row, part.column), b.row / 2, b.trans, columns,
                                     deep, to);
    const Lines x = as_f32(b, part, wide);
    avx512_bf16::pack_right(x.data, x.ld, b.trans, columns, deep, to);
  }
  static void multiply(i64 m, i64 n, i64 k, const Left<E>& a, const E* b, const TileOutput& out) {
    avx512_bf16::multiply(m, n, k, a, b, out);
  }
};

// A sum of nothing, plus the bias.
void write_bias(const Product& p, const Tile& t) {
  for (i64 r = t.row; r < t.row + t.rows; ++r)
    for (i64 c = t.column; c < t.column + t.columns; ++c) {
      const float y = p.bias ? p.bias[c] : 0.0f;
      if (p.type == DType::f32) {
        *y_at<float>(p, r, c) = y;
      } else {
        REDCO_ISA_CALL(to_bf16(&y, reinterpret_cast<u16*>(y_at<bf16>(p, r, c)), 1));
      }
    }
}

template <class Way>
void multiply_in(const Product& p, const Tile& t, const Tiles& tiles, float* room) {
  using E = typename Way::E;
  static_assert(sizeof(E) == sizeof(float));
  E *const left = reinterpret_cast<E*>(room), *const right = left + tiles.left;
  float* const wide_left = room + tiles.left + tiles.right;
  float* const wide_right = wide_left + tiles.wide_left;
  const bool direct = p.type == DType::f32;
  float* const sums = direct ? y_at<float>(p, t.row, t.column) : wide_right + tiles.wide_right;
  const i64 ld = direct ? p.n : t.columns, blocks = blocks_in(p);
  if (blocks == 0) return write_bias(p, t);
  i64 done = 0;
  for (const Term& term : p.terms) {
    const i64 depth = depth_of(term.k);
    for (Block b{0, 0}; b.p < term.k; b.p += b.deep) {
      b.deep = std::min(depth, term.k - b.p);
      const Left<E> a = Way::left(term.a, left_part(term.a, t, b), tiles, t.rows, b.deep, wide_left, left);
      Way::right(term.b, right_part(term.b, t, b), t.columns, b.deep, wide_right, right);
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
      Way::multiply(t.rows, t.columns, b.deep, a, right, out);
    }
  }
}

// Whether y^T = b^T a^T is less work: with few rows in y if it can read b, which is large, as it lies, and
// with so few columns that most lanes of a vector along them would be empty.
bool transposes(const Product& p, bool paired) {
  constexpr i64 kLanes = 16;
  if (blocks_in(p) == 0) return false;
  bool as_it_lies = p.m <= kTransposedRows;
  for (const Term& t : p.terms) {
    if (is_grouped(t.b.type) && (paired || !t.b.trans)) return false;
    as_it_lies = as_it_lies && !t.a.trans && t.b.trans;
  }
  return as_it_lies || 2 * p.n * ceil_div(p.m, kLanes) <= p.m * ceil_div(p.n, kLanes);
}

Matrix transpose_of(Matrix x) {
  x.trans = !x.trans;
  return x;
}
// The same matrix from row or column `first` on: a row of the operand on the left, a column of that on the
// right.
Matrix from_row(Matrix x, i64 first) {
  x.data = x.trans ? at(x, 0, first) : at(x, first, 0);
  return x;
}
Matrix from_column(Matrix x, i64 first) {
  x.data = x.trans ? at(x, first, 0) : at(x, 0, first);
  return x;
}
// The product of a tile of y^T, without bias: for sums.
Product transposed(const Product& p, const Tile& t) {
  Product out{.m = t.columns, .n = t.rows};
  for (const Term& x : p.terms)
    out.terms.push_back({from_row(transpose_of(x.b), t.column), from_column(transpose_of(x.a), t.row), x.k});
  return out;
}

// A tile of y from one of y^T.
template <class Way>
void multiply_transposed(const Product& p, const Tile& t, const Tiles& tiles, float* room) {
  Product of_tile = transposed(p, t);
  float* const sums = room + tiles.room() - tiles.sums;
  of_tile.y = sums;
  multiply_in<Way>(of_tile, {0, t.columns, 0, t.rows}, tiles, room);
  const float* const bias = p.bias ? p.bias + t.column : nullptr;
  if (p.type == DType::f32)
    return REDCO_ISA_CALL(
        transpose_sums(sums, t.columns, t.rows, bias, y_at<float>(p, t.row, t.column), p.n));
  float* const rows = sums + t.columns * t.rows;
  REDCO_ISA_CALL(transpose_sums(sums, t.columns, t.rows, bias, rows, t.columns));
  for (i64 r = 0; r < t.rows; ++r)
    REDCO_ISA_CALL(
        to_bf16(rows + r * t.columns, reinterpret_cast<u16*>(y_at<bf16>(p, t.row + r, t.column)), t.columns));
}

template <class Way>
void add_rooms(Tiles& t, const Product& p) {
  for (const Term& term : p.terms) Way::add_rooms(t, term, std::min(term.k, depth_of(term.k)));
}

}  // namespace

Tiles tiles_of(const Product& p, bool paired, i64 threads) {
  // A tile packs both operands, so tiles are as large as the number of threads allows.
  constexpr i64 kSmallest = 2 * kTileUnit;
  Tiles t{.rows = std::min<i64>(512, p.m),
          .columns = std::min<i64>((paired ? 8 : 16) * kTileUnit, p.n),
          .transposed = transposes(p, paired)};
  while (ceil_div(p.m, t.rows) * ceil_div(p.n, t.columns) < 2 * threads &&
         std::max(t.rows, t.columns) > kSmallest) {
    i64& side = t.rows >= t.columns ? t.rows : t.columns;
    side = ceil_div(ceil_div(side, 2), kTileUnit) * kTileUnit;
  }
  if (t.transposed) {
    Tiles rooms{.rows = t.columns, .columns = t.rows};
    const Product other = transposed(p, {0, p.m, 0, p.n});
    paired ? add_rooms<InPairs>(rooms, other) : add_rooms<InF32>(rooms, other);
    rooms.sums = t.columns * t.rows * (p.type == DType::f32 ? 1 : 2);
    std::swap(rooms.rows, rooms.columns);
    rooms.transposed = true;
    return rooms;
  }
  for (const Term& term : p.terms)  // groups along the columns of b are not cut
    if (is_grouped(term.b.type) && !term.b.trans)
      t.columns = std::min(p.n, ceil_div(t.columns, kGroup) * kGroup);
  paired ? add_rooms<InPairs>(t, p) : add_rooms<InF32>(t, p);
  if (p.type != DType::f32 && blocks_in(p) > 1) t.sums = t.rows * t.columns;
  return t;
}

void multiply_tile(const Product& p, bool paired, const Tile& t, const Tiles& tiles, float* room) {
  if (tiles.transposed)
    return paired ? multiply_transposed<InPairs>(p, t, tiles, room)
                  : multiply_transposed<InF32>(p, t, tiles, room);
  paired ? multiply_in<InPairs>(p, t, tiles, room) : multiply_in<InF32>(p, t, tiles, room);
}

}  // namespace redco::kernels

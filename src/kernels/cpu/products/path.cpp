#include "kernels/cpu/products/path.h"

#include <algorithm>
#include <optional>

#include "kernels/cpu/products/limits.h"
#include "kernels/cpu/products/matrix.h"
#include "kernels/isa.h"

namespace redco::kernels {
namespace {

bool any_groups(const Product& p) {
  return std::ranges::any_of(p.terms, [](const Term& t) { return is_grouped(t.b.type); });
}

// The most rows that are computed without packing b, which is stored by its rows.
i64 most_rows(DType b, Unit unit) {
  if (unit == Unit::f32) return b == DType::f32 ? kFewRows : kFewWidenedRows;
  return is_grouped(b) ? kFewGroupRows : kFewRows;
}

// Path::rows or columns, if y has few rows and its operands are read without packing. Groups can be in
// the first term only, since their sums do not add to others.
std::optional<Path> path_of_few_rows(const Product& p, Unit unit) {
  if (p.terms.empty()) return std::nullopt;
  bool by_columns = p.m <= kFewRows, by_rows = p.m <= most_rows(p.terms[0].b.type, unit);
  for (const Term& t : p.terms) {
    const bool unreadable = t.a.trans && (p.m > kFewRows || t.a.type != DType::f32);
    if (unreadable || t.k == 0) return std::nullopt;
    by_columns = by_columns && !t.b.trans && t.b.type == DType::f32;
    by_rows = by_rows && t.b.trans && (&t == &p.terms[0] || !is_grouped(t.b.type));
  }
  if (by_rows) return Path::rows;
  if (by_columns) return Path::columns;
  return std::nullopt;
}

// Groups are read as a right operand only.
bool has_few_columns(const Product& p) {
  const bool long_sums = std::ranges::all_of(p.terms, [](const Term& t) { return t.k >= kLongSum; });
  return p.n <= (long_sums ? kFewRows : kFewColumns) && !any_groups(p);
}

// Whether y has few rows, and tiles of y^T read b, which is large, without packing it.
bool reads_stored_b(const Product& p, Unit unit) {
  const bool full = unit != Unit::amx && p.m <= kTransposedFullRows && fills_lanes(p.m);
  const DType own = unit == Unit::f32 ? DType::f32 : DType::bf16;
  return std::ranges::all_of(p.terms, [&](const Term& t) {
    return !t.a.trans && t.b.trans && (p.m <= kTransposedRows || (full && t.b.type == own));
  });
}

}  // namespace

Unit unit_of(bool bf16) {
  return !bf16 || isa() < Isa::avx512_bf16 ? Unit::f32 : isa() == Isa::amx ? Unit::amx : Unit::dot;
}

bool in_words(i64 m, const Term& t) { return m == 1 && is_grouped(t.b.type); }

Path path_of_tiles(const Product& p, Unit unit) {
  if (std::ranges::all_of(p.terms, [](const Term& t) { return t.k <= 0; })) return Path::tiles;
  for (const Term& t : p.terms)
    if (is_grouped(t.b.type) && (unit != Unit::f32 || !t.b.trans)) return Path::tiles;
  // With so few columns most lanes of a vector along them would be empty.
  const bool narrow = 2 * p.n * ceil_div(p.m, kWidestLanes) <= p.m * ceil_div(p.n, kWidestLanes);
  return reads_stored_b(p, unit) || narrow ? Path::tiles_of_transpose : Path::tiles;
}

Path path_of(const Product& p, Unit unit) {
  if (const auto few = path_of_few_rows(p, unit)) return *few;
  if (has_few_columns(p))
    if (const auto few = path_of_few_rows(transpose_of(p), unit))
      return *few == Path::rows ? Path::rows_of_transpose : Path::columns_of_transpose;
  return path_of_tiles(p, unit);
}

}  // namespace redco::kernels

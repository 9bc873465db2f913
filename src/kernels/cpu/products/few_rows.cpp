#include "kernels/cpu/products/few_rows.h"

#include <algorithm>
#include <array>

#include "kernels/cpu/isa/ranges.h"
#include "kernels/cpu/products/limits.h"
#include "kernels/cpu/products/matrix.h"
#include "kernels/cpu/room.h"
#include "kernels/isa.h"

namespace redco::kernels {
namespace {

constexpr i64 kRowsOfB = 64, kColumnsOfB = 256;  // of a piece

// Whether the left operand of a term does not lie as rows of fp32, and is copied so.
bool copied(const Term& t) { return t.a.type != DType::f32 || t.a.trans; }

LeftRows left_in(Room<float>& room, i64 m, const Term& t) {
  LeftRows x;
  if (in_words(m, t)) {
    const i64 groups = groups_in(t.k);
    x.words = room.take<std::int16_t>(groups * kGroup);
    x.scales = room.take(groups);
    x.sums = room.take(groups);
  }
  if (copied(t)) x.wide = room.take(m * t.k);
  return x;
}

const float* rows_of(const Term& t, const LeftRows& left) {
  return copied(t) ? left.wide : elements<float>(t.a, 0, 0);
}

void copy_left(i64 m, const Term& t, const LeftRows& left) {
  if (t.a.trans) {
    for (i64 r = 0; r < m; ++r)
      for (i64 i = 0; i < t.k; ++i) left.wide[r * t.k + i] = *elements<float>(t.a, i, r);
  } else if (copied(t)) {
    for (i64 r = 0; r < m; ++r) widen(t.a, r, 0, t.k, left.wide + r * t.k);
  }
  if (!in_words(m, t)) return;
  REDCO_ISA_CALL(to_words(rows_of(t, left), t.k, left.words, left.scales));
  const i64 groups = groups_in(t.k);
  if (t.b.type == DType::q4) REDCO_ISA_CALL(split_words(groups, left.words, left.scales, left.sums));
  visit_groups(t.b.type, [&](auto zero) {
    using G = decltype(zero);
    if constexpr (kHasMinimum<G> && !kMade<G>)
      REDCO_ISA_CALL(sum_words(groups, left.words, left.scales, left.sums));
  });
}

// y[m, n] = x[m, k] w[n, k]^T, of the rows of x from `row` on and those of w from `first` on.
// before: 1 adds to y, 0 doesn't; a matrix of groups doesn't add.
struct Rows {
  i64 row, rows, first, n;
};
void multiply_rows(const Rows& part, const Term& t, const LeftRows& left, float before, float* y, i64 ld) {
  const auto [row, m, first, n] = part;
  const Matrix& w = t.b;
  const i64 k = t.k;
  const float* const x = rows_of(t, left) + row * k;
  if (w.type == DType::f32)
    return REDCO_ISA_CALL(
        rows_times_bt(m, n, k, 1.0f, x, k, elements<float>(w, first, 0), w.row / 4, before, y, ld));
  if (w.type == DType::bf16)
    return REDCO_ISA_CALL(
        rows_times_bt(m, n, k, 1.0f, x, k, elements<bf16>(w, first, 0), w.row / 2, before, y, ld));
  visit_groups(w.type, [&](auto zero) {
    using G = decltype(zero);
    const G* const groups = elements<G>(w, first, 0);
    if (!left.words) return REDCO_ISA_CALL(rows_times_groups(m, n, k, x, k, groups, y, ld));
    const RowOfWords words{reinterpret_cast<const std::int8_t*>(left.words), left.scales, left.sums};
    REDCO_ISA_CALL(row_times_groups(n, groups_in(k), words, groups, y));
  });
}

}  // namespace

FewRows::FewRows(const Product& p, Path path)
    : y_(&p), path_(path), few_(is_transposed(path) ? transpose_of(p) : p) {}

i64 FewRows::room() const {
  Room<float> room;
  for (const Term& t : few_.terms) left_in(room, few_.m, t);
  return room.used();
}

void FewRows::prepare(float* memory) {
  Room<float> room(memory);
  for (const Term& t : few_.terms) {
    left_.push_back(left_in(room, few_.m, t));
    copy_left(few_.m, t, left_.back());
  }
}

i64 FewRows::pieces() const { return ceil_div(few_.n, reads_rows(path_) ? kRowsOfB : kColumnsOfB); }

i64 FewRows::work() const {
  i64 k = 0;
  for (const Term& t : few_.terms) k += t.k;
  return few_.n * k;
}

// Where the sums of a piece go: to y if it has their type and order, or else to `own`.
struct FewRows::Sums {
  float* to;
  i64 ld;
  bool in_y;
};
FewRows::Sums FewRows::sums_at(i64 row, i64 column, i64 columns, float* own) const {
  if (y_->type != DType::f32 || (is_transposed(path_) && few_.m > 1)) return {own, columns, false};
  return {static_cast<float*>(y_->y) + row * few_.n + column, few_.n, true};
}

// Adds the bias to the sums of rows [row, row + rows) and columns [column, column + columns), and writes them
// to y unless they are there.
void FewRows::finish(i64 row, i64 rows, i64 column, i64 columns, const Sums& sums) const {
  const Product& p = *y_;
  if (sums.in_y && !p.bias) return;
  const auto biased = [&p](float sum, i64 c) { return p.bias ? sum + p.bias[c] : sum; };
  if (!is_transposed(path_)) {
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

void FewRows::by_rows(i64 piece) const {
  const Product& p = few_;
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
      const Sums sums = sums_at(r, j, n, own.data());
      for (std::size_t t = 0; t < p.terms.size(); ++t)
        multiply_rows({r, rows, j, n}, p.terms[t], left_[t], t == 0 ? 0.0f : 1.0f, sums.to, sums.ld);
      finish(r, rows, j, n, sums);
    }
  }
}

void FewRows::by_columns(i64 piece) const {
  const Product& p = few_;
  const i64 j = piece * kColumnsOfB, n = std::min(kColumnsOfB, p.n - j);
  std::array<float, kFewRows * kColumnsOfB> own;  // NOLINT: written below
  const Sums sums = sums_at(0, j, n, own.data());
  constexpr i64 kDeep = 64;  // rows of b: those of a piece stay in the L2 cache, and their pages in the TLB
  float before = 0;
  for (std::size_t t = 0; t < p.terms.size(); ++t) {
    const Term& term = p.terms[t];
    const float* const x = rows_of(term, left_[t]);
    for (i64 i = 0; i < term.k; i += kDeep) {
      REDCO_ISA_CALL(rows_times_b(p.m, n, std::min(kDeep, term.k - i), 1.0f, x + i, term.k,
                                  elements<float>(term.b, i, j), term.b.row / 4, before, sums.to, sums.ld));
      before = 1;
    }
  }
  finish(0, p.m, j, n, sums);
}

}  // namespace redco::kernels

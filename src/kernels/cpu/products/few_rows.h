// Products of few rows (or, transposed, of few columns), whose speed is that of reading b.
#pragma once

#include "kernels/cpu/products/path.h"

namespace redco::kernels {

// The left operand of a term where it does not lie as rows of fp32; null: not needed. The words are one row
// in 16-bit integers (RowOfWords).
struct LeftRows {
  std::int16_t* words = nullptr;
  float* scales = nullptr;  // one for each group
  float* sums = nullptr;    // one for each group
  float* wide = nullptr;    // [rows, k]
};

class FewRows {
 public:
  FewRows() = default;
  // REQUIRES: !has_tiles(path). `p` outlives it.
  FewRows(const Product& p, Path path);
  // Floats of the workspace.
  i64 room() const;
  // Lays out the workspace and copies the left operands there, before pieces run.
  void prepare(float* room);
  i64 pieces() const;
  // Computes piece i: some rows or columns of b. Pieces run on any thread.
  void run(i64 i) const { reads_rows(path_) ? by_rows(i) : by_columns(i); }
  // Elements of b.
  i64 work() const;

 private:
  struct Sums;
  Sums sums_at(i64 row, i64 column, i64 columns, float* own) const;
  void finish(i64 row, i64 rows, i64 column, i64 columns, const Sums& sums) const;
  void by_rows(i64 piece) const;
  void by_columns(i64 piece) const;

  const Product* y_ = nullptr;  // the product of the caller
  Path path_ = Path::rows;
  Product few_;  // y, or y^T, which has few rows
  SmallVector<LeftRows, 3> left_;
};

}  // namespace redco::kernels

// Rows of a rank's part of a parameter, and their places in the stored tensors.
#pragma once

#include <string>
#include <vector>

#include "ckpt/box.h"
#include "nn/param_tree.h"
#include "tensor/tensor.h"

namespace redco::ckpt {

// Whether one stored tensor [count, ...] holds all matrices of a stack (StoredAs::stacked).
inline bool in_one_tensor(const StoredAs& s) { return s.stacked > 0 && s.shape.size() == 3; }
// A rank's part of a parameter as rows: of dim 0, or of dims 0 and 1 if dim 0 is a stack of stored tensors.
i64 rows_of(const ParamSpec& s, const Shape& local);
i64 row_elements(const ParamSpec& s, const Shape& local);
// Local rows [r, r + n) of a tensor; a row has `row` elements.
View rows_in(const Tensor& t, i64 r, i64 n, i64 row);

// The place of some of those rows in a stored tensor, with the strides in memory.
struct Place {
  std::string tensor;
  Box box;
  Strides strides;
  i64 elements;
};
// Rows [r0, r1) of a rank's part, whose ranges in the whole parameter are `at`; in the order of memory.
std::vector<Place> places_of(const ParamSpec& s, const std::vector<redco::Range>& at, i64 r0, i64 r1);

}  // namespace redco::ckpt

// Rows of a rank's part of a parameter, and their places in the stored tensors.
#pragma once

#include <string>
#include <vector>

#include "ckpt/box.h"
#include "nn/param_tree.h"
#include "tensor/tensor.h"

namespace redco::ckpt {

// A rank's part of a parameter as rows: of dim 0, or of dims 0 and 1 if dim 0 is a stack of stored tensors.
i64 rows_of(const ParamSpec& s, const Shape& local);
i64 row_elements(const ParamSpec& s, const Shape& local);
// Local rows [r, r + n) of a tensor; a row has `row` elements.
View rows_in(const Tensor& t, i64 r, i64 n, i64 row);

// The place of some of those rows in a stored tensor, with the strides in memory.
struct Place {
  std::string tensor;
  // The stored tensor's shape with one of its dims as two, whose box follows; empty: its own shape.
  Shape view;
  Box box;
  Strides strides;
  i64 elements;
};
// Rows [r0, r1) of a rank's part, whose ranges in the whole parameter are `at`; in the order of memory.
std::vector<Place> places_of(const ParamSpec& s, const std::vector<redco::Range>& at, i64 r0, i64 r1);

}  // namespace redco::ckpt

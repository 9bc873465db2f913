// Kernels on lists of tensors, each one parallel loop (list_blocks.h).
#pragma once

#include "kernels/arguments.h"
#include "kernels/view.h"

namespace redco::kernels {

inline i64 total_numel(const Views& list) {
  i64 n = 0;
  for (const View& v : list) n += v.numel();
  return n;
}

// ---- Optimizers (kernels/table.h) ----
void adamw(const AdamW& h, const Views& p, const Views& g, const Views& m, const Views& v);
void sgd(const Sgd& h, const Views& p, const Views& g, const Views& buffers);
void average(double rate, const Views& x, const Views& y);
void round_weights(const Views& x, const Views& y);

// ---- The words of the sum of squares (kernels/square_sum.h) ----
// workspace: sum_squares_workspace() elements, uninitialized; n: total_numel(x).
void sum_squares(const Views& x, double* words, double* workspace);
i64 sum_squares_workspace(i64 n);

}  // namespace redco::kernels

// Second moments of the inputs of a matrix as coefficients: what an error in one column asks of the later
// ones.
#pragma once

#include <utility>
#include <vector>

#include "base/types.h"

namespace redco::gguf {

// With H = X^T X of the inputs and an error e in each row of a matrix, the outputs change by e H e^T. For
// H = U D U^T (U upper, with ones as diagonal) this is the sum over columns k of D_k (e_k + sum over i < k of
// e_i U_ik)^2. So columns are rounded in order, each with the earlier errors times U added: this is GPTQ
// (Frantar et al., 2023), whose Cholesky factor of the inverse has the same U.
class ErrorFeedback {
 public:
  // moments: H[n, n] / rows. 1 % of the mean of its diagonal is added to the diagonal.
  ErrorFeedback(const std::vector<float>& moments, i64 n);
  // From coefficients() of another one.
  explicit ErrorFeedback(std::vector<float> coefficients) : u_(std::move(coefficients)) {}

  static constexpr i64 kGroup = 32;  // columns
  // The number of coefficients for n columns.
  static i64 size(i64 n) {
    const i64 groups = ceil_div(n, kGroup);
    return kGroup * kGroup * groups * (groups + 1) / 2;
  }
  const std::vector<float>& coefficients() const { return u_; }
  // U[i, k] for the columns k of a group; 0 for k <= i. REQUIRES: i is at most the last column of the group.
  const float* of(i64 i, i64 group) const {
    return u_.data() + kGroup * (kGroup * group * (group + 1) / 2 + i);
  }

 private:
  std::vector<float> u_;  // for each group of columns, the rows up to its last column
};

}  // namespace redco::gguf

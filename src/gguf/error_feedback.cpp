#include "gguf/error_feedback.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/parallel.h"

namespace redco::gguf {

namespace {

constexpr double kDamping = 0.01;  // of the mean of the diagonal

using FourDoubles = double __attribute__((vector_size(32)));
constexpr i64 kFour = 4;

// No result by value: how vectors are returned depends on the instruction set.
void get_four(const double* x, FourDoubles& to) { std::memcpy(&to, x, sizeof to); }

// The lower factor of a positive matrix, in place, row-major. Rows below a block of columns are independent.
class LowerFactor {
 public:
  LowerFactor(std::vector<double>& a, i64 n) : a_(a.data()), n_(n) {}

  void compute() {
    constexpr i64 kColumns = 64, kRows = 16;
    for (i64 begin = 0; begin < n_; begin += kColumns) {
      const i64 end = std::min(begin + kColumns, n_);
      for (i64 i = begin; i < end; ++i) {
        solve(i, begin, i);
        double* row = a_ + i * n_;
        row[i] -= dot(row, row, i);
        REDCO_CHECK(row[i] > 0, "second moments are not positive in row {} of {}", i, n_);
        row[i] = std::sqrt(row[i]);
      }
      parallel::for_each(ceil_div(n_ - end, kRows), [&](i64 piece) {
        const i64 first = end + piece * kRows;
        for (i64 i = first; i < std::min(first + kRows, n_); ++i) solve(i, begin, end);
      });
    }
  }

 private:
  static double dot(const double* x, const double* y, i64 n) {
    double sum = 0;
    for (i64 k = 0; k < n; ++k) sum += x[k] * y[k];
    return sum;
  }
  // Columns [begin, end) of row i, given those before and the rows of the block.
  void solve(i64 i, i64 begin, i64 end) {
    double* x = a_ + i * n_;
    i64 j = begin;
    for (; j + kFour <= end; j += kFour) {
      FourDoubles sums[kFour] = {};
      for (i64 k = 0; k < begin; k += kFour) {  // begin: a multiple of the columns of a block
        FourDoubles own, other;
        get_four(x + k, own);
        for (i64 c = 0; c < kFour; ++c) {
          get_four(a_ + (j + c) * n_ + k, other);
          sums[c] += own * other;
        }
      }
      for (i64 c = 0; c < kFour; ++c) {
        const FourDoubles& s = sums[c];
        finish(x, begin, j + c, s[0] + s[1] + s[2] + s[3]);
      }
    }
    for (; j < end; ++j) finish(x, begin, j, dot(x, a_ + j * n_, begin));
  }
  void finish(double* x, i64 begin, i64 j, double sum) const {
    const double* y = a_ + j * n_;
    x[j] = (x[j] - sum - dot(x + begin, y + begin, j - begin)) / y[j];
  }

  double* const a_;
  const i64 n_;
};

}  // namespace

ErrorFeedback::ErrorFeedback(const std::vector<float>& moments, i64 n) {
  REDCO_CHECK(std::ssize(moments) == n * n && n > 0, "{} moments of {} columns", moments.size(), n);
  // In reverse order: a lower factor of it is an upper one of H.
  std::vector<double> a(moments.rbegin(), moments.rend());
  double mean = 0;
  for (i64 i = 0; i < n; ++i) mean += a[i * (n + 1)] / static_cast<double>(n);
  const double damping = mean > 0 ? kDamping * mean : 1;
  for (i64 i = 0; i < n; ++i) a[i * (n + 1)] += damping;
  LowerFactor(a, n).compute();
  const i64 groups = ceil_div(n, kGroup);
  u_.resize(static_cast<std::size_t>(size(n)));
  float* to = u_.data();
  for (i64 g = 0; g < groups; ++g)
    for (i64 i = 0; i < (g + 1) * kGroup; ++i)
      for (i64 k = g * kGroup; k < (g + 1) * kGroup; ++k, ++to)
        if (i < k && k < n) {
          const i64 row = n - 1 - i, column = n - 1 - k;
          *to = static_cast<float>(a[row * n + column] / a[column * (n + 1)]);
        }
}

}  // namespace redco::gguf

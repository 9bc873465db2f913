#include "pipelines/embedding_losses.h"

#include <numeric>

#include "ops/create.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/linear.h"
#include "ops/reduce.h"
#include "ops/shape.h"
#include "ops/softmax.h"
#include "pipelines/pooling.h"
#include "shard/layout.h"

namespace redco {

namespace {

Tensor cosines(const Tensor& a, const Tensor& b) { return sum(unit_rows(a) * unit_rows(b), {-1}); }  // [N]

}  // namespace

Tensor info_nce(const Tensor& anchors, const Tensor& positives, const std::vector<Tensor>& negatives,
                double factor, bool symmetric) {
  const i64 n = anchors.size(0);
  std::vector<i32> numbers(static_cast<size_t>(n));
  std::iota(numbers.begin(), numbers.end(), 0);
  const Tensor own = from_ids({n}, numbers, batch_layout());
  const Tensor a = unit_rows(anchors);
  const auto scores = [&](const Tensor& candidates) {  // [N, N]
    return scale(matmul(a, unit_rows(candidates), false, true), factor);
  };
  const Tensor pairs = scores(positives);
  std::vector<Tensor> all = {pairs};
  for (const Tensor& one : negatives) all.push_back(scores(one));
  const Tensor forward = sum_all(cross_entropy(all.size() == 1 ? pairs : concat(all, 1), own));
  if (!symmetric) return forward;
  return 0.5 * (forward + sum_all(cross_entropy(transpose(pairs, 0, 1), own)));
}

Tensor cosent(const Tensor& a, const Tensor& b, const Tensor& scores, double factor) {
  const i64 n = a.size(0);
  const Tensor s = scale(cosines(a, b), factor);
  const auto column = [n](const Tensor& x) { return reshape(x, {n, 1}); };
  const auto row = [n](const Tensor& x) { return reshape(x, {1, n}); };
  const Tensor lower = compare(Binary::lt, column(scores), row(scores));  // [N, N]
  const Tensor terms = column(s) - row(s) + scale(add_scalar(lower, -1), 1e30);
  const Tensor of_rows = reshape(log_sum_exp(terms), {1, n});
  return sum_all(log_sum_exp(concat({zeros({1, 1}, s.dtype()), of_rows}, 1)));
}

Tensor cosine_squared_error(const Tensor& a, const Tensor& b, const Tensor& scores) {
  return sum_all(square(cosines(a, b) - scores));
}

}  // namespace redco

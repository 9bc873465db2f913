#include "pipelines/pair_losses.h"

#include <numeric>

#include "ops/create.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/linear.h"
#include "ops/reduce.h"
#include "ops/shape.h"

namespace redco {

namespace {

// [N] i32: 0, 1, 2, ...
Tensor own_pairs(const Tensor& logits) {
  std::vector<i32> numbers(static_cast<size_t>(logits.size(0)));
  std::iota(numbers.begin(), numbers.end(), 0);
  return from_ids({logits.size(0)}, numbers, batch_layout());
}

}  // namespace

Tensor pair_logits(const Tensor& images, const Tensor& texts, const Tensor& log_scale, const Tensor& bias) {
  const Tensor z = matmul(images, texts, false, true) * exp(log_scale);
  return bias.defined() ? z + bias : z;
}

Tensor softmax_pair_loss(const Tensor& logits) {
  const Tensor own = own_pairs(logits);
  const Tensor to_text = cross_entropy(logits, own), to_image = cross_entropy(transpose(logits, 0, 1), own);
  return 0.5 * (sum_all(to_text) + sum_all(to_image));
}

// -log sigmoid(z) = softplus(z) - z
Tensor sigmoid_pair_loss(const Tensor& logits) {
  return sum_all(softplus(logits)) - sum_all(pick(logits, own_pairs(logits)));
}

}  // namespace redco

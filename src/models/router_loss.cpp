// Legend: B batch, T tokens, E experts.
#include "models/router_loss.h"

#include "base/error.h"
#include "ops/create.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "ops/experts.h"
#include "ops/reduce.h"
#include "ops/shape.h"
#include "ops/softmax.h"

namespace redco {

RouterSums router_sums(const std::vector<Tensor>& logits, i64 per_token, const Tensor& mask) {
  REDCO_CHECK(!logits.empty(), "the load-balancing loss got no router's logits");
  const Scope scope("router_loss");
  const i64 B = logits[0].size(0), T = logits[0].size(1);
  Tensor tokens;  // [B, T, 1]
  std::vector<Tensor> chosen, probabilities;
  for (const Tensor& of_layer : logits) {
    const Tensor p = softmax(to_sum_type(of_layer));  // [B, T, E]
    if (!tokens.defined()) {
      tokens = mask.defined() ? to_float(mask, p.dtype()) : full({B, T}, 1, p.dtype());
      tokens = reshape(tokens, {B, T, 1});
    }
    chosen.push_back(sum(top_k_mask(stop_gradient(p), per_token) * tokens, {1}));
    probabilities.push_back(sum(p * tokens, {1}));
  }
  return {add(chosen), add(probabilities), scale(sum(tokens, {1, 2}), static_cast<double>(logits.size()))};
}

Tensor load_balancing_loss(const RouterSums& sums) {
  const Scope scope("router_loss");
  const auto experts = static_cast<double>(sums.chosen.size(1));
  const Tensor n = sum_all(sums.tokens);
  const Tensor f = sum(sums.chosen, {0}) / n, p = sum(sums.probabilities, {0}) / n;
  return scale(sum_all(f * p), experts);
}

}  // namespace redco

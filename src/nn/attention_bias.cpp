#include "nn/attention_bias.h"

#include <vector>

#include "base/error.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/order.h"
#include "ops/shape.h"

namespace redco {

namespace {

// Lower than any score, and far from the lowest number, so that sums stay finite.
constexpr double kUnseen = -1e9;

Tensor numbers_to(i64 n, const Shape& shape) { return reshape(to_float(arange(n)), shape); }

// 1 where a <= b, else 0.
Tensor at_most(const Tensor& a, const Tensor& b) { return compare(Binary::le, a, b); }

}  // namespace

Tensor bias_of_mask(const Tensor& seen) {
  const Tensor x = seen.dtype() == DType::i32 ? to_float(seen) : seen;
  return scale(compare(Binary::eq, x, full({}, 0, x.dtype())), kUnseen);
}

Tensor prefix_bias(const Tensor& prefix, i64 tokens) {
  REDCO_CHECK(prefix.visible() == 1, "prefix_bias() got {}; expected a number of tokens for each row [B]",
              describe(prefix));
  const Tensor q = numbers_to(tokens, {1, 1, tokens, 1}), k = numbers_to(tokens, {1, 1, 1, tokens});
  const Tensor in_prefix = 1.0 - at_most(reshape(to_float(prefix), {prefix.size(0), 1, 1, 1}), k);
  return bias_of_mask(at_most(k, q) + in_prefix);
}

Tensor block_bias(i64 tokens, i64 block) {
  REDCO_CHECK(block > 0, "block_bias() got blocks of {} tokens", block);
  std::vector<float> seen;
  for (i64 q = 0; q < tokens; ++q)
    for (i64 k = 0; k < tokens; ++k)
      seen.push_back(k / block <= q / block ? 0.0F : static_cast<float>(kUnseen));
  return from_values({1, 1, tokens, tokens}, std::span<const float>(seen));
}

}  // namespace redco

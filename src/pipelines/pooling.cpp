// Legend: B batch, S tokens, C width.
#include "pipelines/pooling.h"

#include <limits>

#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/select.h"
#include "ops/shape.h"

namespace redco {

namespace {

constexpr double kLeastNorm = 1e-12;  // as in torch.nn.functional.normalize
constexpr double kNoMost = std::numeric_limits<double>::infinity();

// The weights of a row in a mode.
std::vector<i32> weights_of(const std::string& mode, i64 tokens, i64 skip) {
  std::vector<i32> w(static_cast<size_t>(tokens), 0);
  skip = std::min(skip, tokens);
  if (mode == "cls") {
    w[static_cast<size_t>(skip < tokens ? skip : 0)] = 1;
  } else if (mode == "lasttoken") {
    w.back() = 1;
  } else {
    for (i64 i = skip; i < tokens; ++i)
      w[static_cast<size_t>(i)] = mode == "weightedmean" ? static_cast<i32>(i + 1) : 1;
  }
  return w;
}

}  // namespace

void add_pooling_weights(Batch& batch, const std::string& prefix, std::span<const std::string> modes,
                         std::span<const i64> tokens, std::span<const i64> skip) {
  for (const std::string& mode : modes) {
    std::vector<Example> rows(tokens.size());
    for (size_t r = 0; r < rows.size(); ++r) rows[r].ids["w"] = weights_of(mode, tokens[r], skip[r]);
    batch.fields[prefix + "pool." + mode] = id_rows(rows, batch.shape, "w", 0);
  }
}

Tensor pool(const Tensor& hidden, const Batch& batch, const std::string& prefix,
            std::span<const std::string> modes) {
  const Scope scope("pooling");
  const Tensor x = to_sum_type(hidden);
  std::vector<Tensor> parts;
  for (const std::string& mode : modes) {
    const Tensor& ids = batch[prefix + "pool." + mode];
    const Tensor w = reshape(to_float(ids, x.dtype()), {ids.size(0), ids.size(1), 1});  // [B, S, 1]
    if (mode == "max") {
      // The mean of the largest values, which are equal: so the gradient reaches them.
      const Tensor real = x + scale(add_scalar(w, -1), 1e30);
      const Tensor largest = transpose(max_last(transpose(stop_gradient(real), 1, 2)), 1, 2);  // [B, 1, C]
      const Tensor is_largest = compare(Binary::eq, stop_gradient(real), largest);
      parts.push_back(sum(x * is_largest, {1}) / sum(is_largest, {1}));
      continue;
    }
    const Tensor total = clamp(sum(w, {1}), 1e-9, kNoMost);  // [B, 1]
    parts.push_back(sum(x * w, {1}) / (mode == "mean_sqrt_len_tokens" ? sqrt(total) : total));
  }
  return parts.size() == 1 ? parts[0] : concat(parts, 1);
}

Tensor unit_rows(const Tensor& x) {
  return x * rsqrt(clamp(sum(square(x), {-1}, true), kLeastNorm * kLeastNorm, kNoMost));
}

}  // namespace redco

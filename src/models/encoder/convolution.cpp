// Legend: B batch, T tokens, C width, K size of the kernel, G groups.
#include "models/encoder/convolution.h"

#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/linear.h"
#include "ops/shape.h"

namespace redco {

namespace {

// [B, T, 1]: 1 at tokens, 0 at padding.
Tensor column_of(const Tensor& mask, DType type) {
  return reshape(to_float(mask, type == DType::f64 ? DType::f64 : DType::f32),
                 {mask.size(0), mask.size(1), 1});
}

// As a product with the K tokens around each token, for each group of channels.
Tensor convolved(const ParamTree& p, const std::string& name, const ConvolutionSettings& s, const Tensor& x) {
  const i64 B = x.size(0), T = x.size(1), C = x.size(2), K = s.size, G = s.groups;
  const Tensor wide = pad_to(x, 1, K / 2, T + K - 1);
  std::vector<Tensor> near;
  for (i64 k = 0; k < K; ++k) near.push_back(narrow(wide, 1, k, T));
  const Tensor grouped = permute(reshape(concat(near, 2), {B, T, K, G, C / G}), {0, 3, 1, 2, 4});
  const Tensor weight = permute(reshape(p[name + ".weight"], {1, G, C / G, C / G, K}), {0, 1, 2, 4, 3});
  const Tensor y = matmul(reshape(grouped, {B, G, T, K * (C / G)}),
                          reshape(weight, {1, G, C / G, K * (C / G)}), false, true);
  return reshape(permute(y, {0, 2, 1, 3}), {B, T, C}) + p[name + ".bias"];
}

}  // namespace

void declare_convolution(SpecBuilder& b, const std::string& name, const ConvolutionSettings& s, i64 width,
                         const NormSettings& norm, double std) {
  b.add(name + ".conv.weight", {width, width / s.groups, s.size}, ParamKind::conv, {Init::Kind::normal, std});
  b.add(name + ".conv.bias", {width}, ParamKind::bias, {Init::Kind::zeros, 0});
  declare_norm(b, name + ".LayerNorm", width, norm);
}

Tensor add_convolution(const ParamTree& p, const std::string& name, const ConvolutionSettings& s,
                       const NormSettings& n, const ApplyOptions& o, const Tensor& x, const Tensor& y,
                       const Tensor& mask) {
  Scope scope("convolution");
  Tensor c = convolved(p, name + ".conv", s, gather_tokens(o, x));
  if (mask.defined()) c = c * column_of(mask, c.dtype());
  c = activate(s.activation, dropout(o, "convolution", s.dropout, c));
  const Tensor sum = norm(p, name + ".LayerNorm", y + residual(o, c), n, NormResult::stream);
  return mask.defined() ? sum * column_of(mask, sum.dtype()) : sum;
}

}  // namespace redco

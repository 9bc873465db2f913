// A convolution over the tokens at the first layer of an encoder (DeBERTa-v2's xlarge models).
#pragma once

#include <string>

#include "models/norms.h"
#include "models/spec_builder.h"
#include "nn/layers.h"

namespace redco {

struct ConvolutionSettings {
  i64 size = 3;    // of the kernel, in tokens; odd
  i64 groups = 1;  // of channels; divides the width
  std::string activation = "tanh";
  double dropout = 0;  // before the activation
};

// `name`.conv.weight [C, C / groups, size] with its bias, and the norm `name`.LayerNorm.
void declare_convolution(SpecBuilder& b, const std::string& name, const ConvolutionSettings& s, i64 width,
                         const NormSettings& norm, double std);
// norm(y + activation(conv(x))), where y is the first layer's result for x: [B, T, C] each. Tokens outside of
// the text are zeros, and so are the results where mask ([B, T] i32, or undefined) is 0.
Tensor add_convolution(const ParamTree& p, const std::string& name, const ConvolutionSettings& s,
                       const NormSettings& norm, const ApplyOptions& o, const Tensor& x, const Tensor& y,
                       const Tensor& mask);

}  // namespace redco

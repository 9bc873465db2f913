// The activation xIELU (Huang 2024, arXiv:2411.13010), whose slopes are parameters of the layer.
#pragma once

#include <string>

#include "models/spec_builder.h"

namespace redco {

// `prefix.alpha_p` and `prefix.alpha_n` [1], and the constants `prefix.beta` and `prefix.eps`, which files
// store too.
void declare_xielu(SpecBuilder& b, const std::string& prefix);
// With a = softplus(alpha_p) and n = beta + softplus(alpha_n): beta x + a x^2 for x > 0, and elsewhere
// beta x + n (exp(min(x, eps)) - 1 - x). x of any shape.
Tensor xielu(const ParamTree& p, const std::string& prefix, const Tensor& x);

}  // namespace redco

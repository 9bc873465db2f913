// A layer's mixture of experts: router, experts, and the MLP that all tokens share.
#pragma once

#include <string>

#include "models/decoder/architecture.h"
#include "models/spec_builder.h"

namespace redco {

void declare_mixture(SpecBuilder& b, const std::string& layer, i64 width, double std,
                     const MixtureSettings& s);
// x [B, T, C] -> [B, T, C]
Tensor mixture_of_experts(const ParamTree& p, const std::string& layer, const MixtureSettings& s,
                          const Tensor& x, const ApplyOptions& o);

}  // namespace redco

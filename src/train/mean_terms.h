// The loss terms of an evaluation.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "pipeline/pipeline.h"

namespace redco {

// Means of the terms over micro-batches, reduced once. Without gradients, except those inside loss().
std::map<std::string, double> mean_terms(Pipeline& pipeline, const ParamTree& params,
                                         const std::function<bool(Batch*)>& next);

}  // namespace redco

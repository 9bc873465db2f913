// The numbers that answers are made of.
#pragma once

#include <vector>

#include "tensor/tensor.h"

namespace redco {

// The values of a model's outputs, whole on every rank. Error with the exit code non_finite: one is infinite
// or NaN, so no answer can be made of them. Collective.
std::vector<double> answer_values(const Tensor& outputs);

}  // namespace redco

// Activations by Hugging Face's names, as ops.
#pragma once

#include <optional>
#include <string>

#include "kernels/elementwise.h"

namespace redco {

// The op of an activation's name; none where the name isn't known or means several ops (relu2, linear).
std::optional<kernels::Unary> unary_activation(const std::string& name);

}  // namespace redco

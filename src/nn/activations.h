// Activations by their Hugging Face names, as ops.
#pragma once

#include <optional>
#include <string>

#include "kernels/arguments.h"

namespace redco {

// The op of an activation's name; nullopt if the name is unknown or needs several ops (relu2, linear).
std::optional<kernels::Unary> unary_activation(const std::string& name);

}  // namespace redco

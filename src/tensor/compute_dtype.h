// The data type of activations and matrix products (train.compute_dtype).
#pragma once

#include <cstdint>

namespace redco {

enum class ComputeDType : std::uint8_t { fp32, bf16 };
inline const char* name_of(ComputeDType t) { return t == ComputeDType::bf16 ? "bf16" : "fp32"; }

}  // namespace redco

// The type in which a cache keeps entries (predict.cache_dtype). fp32: the type of the activations.
#pragma once

#include <cstdint>

namespace redco {

enum class CacheDType : std::uint8_t { fp32, bf16 };

}  // namespace redco

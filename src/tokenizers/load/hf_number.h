// JSON numbers as Hugging Face's library parses them.
#pragma once

#include <string_view>

namespace redco {

// The f64 that serde_json's default parser returns for a JSON number: the digits that fit into 64 bits,
// multiplied or divided by one power of ten. For about a fifth of the numbers with 17 digits, the last bit
// differs from the nearest f64. This bit decides which of two Unigram segmentations with equal scores is
// found first. Infinite for numbers that serde_json rejects.
double hf_number(std::string_view number);

}  // namespace redco

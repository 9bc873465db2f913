// Numbers of JSON as Hugging Face's library reads them.
#pragma once

#include <string_view>

namespace redco {

// `number`, which is a number of JSON, as serde_json's default reader makes an f64 of it: the digits that fit
// 64 bits, times or divided by one power of ten. That is off by a bit for about a fifth of the numbers with
// 17 digits, and decides which of two equally good Unigram segmentations is found first. Infinite where
// serde_json gives up.
double hf_number(std::string_view number);

}  // namespace redco

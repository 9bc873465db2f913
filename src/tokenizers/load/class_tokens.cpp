#include "tokenizers/load/class_tokens.h"

namespace redco {

const ClassTokens* find_class_tokens(std::string_view tokenizer_class) {
  for (std::size_t i = 0; i < kClassTokensSize; ++i)
    if (tokenizer_class == kClassTokens[i].tokenizer_class) return &kClassTokens[i];
  return nullptr;
}

std::string class_of_model_type(std::string_view model_type) {
  for (std::size_t i = 0; i < kTypeTokenizersSize; ++i)
    if (model_type == kTypeTokenizers[i].model_type) return kTypeTokenizers[i].tokenizer_class;
  return "";
}

}  // namespace redco

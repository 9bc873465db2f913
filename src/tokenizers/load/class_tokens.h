// The special tokens of transformers' tokenizer classes. scripts/make_hf_keys.py writes the tables.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace redco {

// "": none. In the order of kRoles: bos, eos, unk, sep, pad, cls, mask.
struct ClassTokens {
  const char* tokenizer_class;  // without "Fast"
  const char* tokens[7];
};
extern const ClassTokens kClassTokens[];
extern const std::size_t kClassTokensSize;

// The class of a model_type if no file names one.
struct TypeTokenizer {
  const char* model_type;
  const char* tokenizer_class;
};
extern const TypeTokenizer kTypeTokenizers[];
extern const std::size_t kTypeTokenizersSize;

// The special tokens of a class, given without "Fast"; nullptr if transformers has no such class.
const ClassTokens* find_class_tokens(std::string_view tokenizer_class);
// The class of a model_type; "" if there is none.
std::string class_of_model_type(std::string_view model_type);

}  // namespace redco

// The metadata of a GGUF file from a Hugging Face folder: the inverse of folder_config() and
// folder_tokenizer().
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "gguf/tensor_names.h"
#include "gguf/write.h"

namespace redco::gguf {

using MetadataList = std::vector<std::pair<std::string, Metadata>>;

// The architecture of a config.json; "" for a family that GGUF files of redco can't hold.
std::string architecture_of(const nlohmann::ordered_json& config);

// What the config says about tensors.
FileShape file_shape(const nlohmann::ordered_json& config);

struct ModelMetadata {
  MetadataList values;
  // Tensors that hold settings: the divisors of rotary frequencies.
  std::vector<std::pair<std::string, std::vector<float>>> tensors;
};
// `where` starts errors. ContentsError: a setting that the file has no key for.
ModelMetadata file_metadata(const nlohmann::ordered_json& config, const std::string& where);

// The keys tokenizer.ggml.*. json: tokenizer.json. config: tokenizer_config.json. rows: of the embedding;
// more rows than tokens get other names. ContentsError: a pipeline that llama.cpp has no name for.
struct TokenizerSource {
  const nlohmann::ordered_json& json;
  std::string where;
  i64 rows = 0;
  bool adds_bos = false, adds_eos = false;
  std::vector<std::pair<std::string, i64>> roles;  // "bos", "eos", "padding", ... and their ids
  std::string chat_template;                       // "": none
};
MetadataList file_tokenizer(const TokenizerSource& s);

}  // namespace redco::gguf

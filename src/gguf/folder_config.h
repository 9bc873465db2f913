// config.json and generation_config.json from the metadata of a GGUF file.
#pragma once

#include <string>

#include "gguf/header.h"

namespace redco::gguf {

// The text of a Hugging Face config.json. ContentsError: an architecture that redco doesn't read, a missing
// key, or settings that transformers' config of this family cannot express.
std::string folder_config(const Model& m);

// The text of generation_config.json: ids of special tokens, and all tokens that end an answer.
std::string folder_generation_config(const Header& h);

}  // namespace redco::gguf

// A GGUF file as a Hugging Face folder: config.json, generation_config.json and the tokenizer's files, made
// from its metadata, and links to the file itself, which keeps the weights. The folder is made once in the
// user's cache, so everything that reads a model's folder reads a GGUF file too.
#pragma once

#include <string>

namespace redco::gguf {

// The path of a GGUF file: its name ends in .gguf.
bool is_gguf(const std::string& path);

// For a GGUF file its folder, $XDG_CACHE_HOME/redco/gguf/NAME-HASH (~/.cache without the variable); any other
// path unchanged. A folder is complete or absent; processes may call this at the same time. ContentsError: as
// open_model(), folder_config() and folder_tokenizer(). IoError: the cache cannot be written.
enum class Contents { model, tokenizer };  // tokenizer: of any architecture
std::string folder_of(const std::string& path, Contents contents = Contents::model);

// The file whose folder_of() this folder is; "": another folder.
std::string source_of(const std::string& folder);

// The GGUF file in a folder of folder_of(), or the only one in another folder: "" if there is none.
std::string file_in(const std::string& folder);

}  // namespace redco::gguf

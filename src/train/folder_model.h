// The model in a Hugging Face folder: built from its config and from what its files show beyond the config.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/model.h"

namespace redco {

struct FolderConfig {
  ConfigJson config;
  std::map<std::string, std::string> overrides;  // key -> JSON text
  std::vector<std::string> ignore_keys;
  ConfigPlaces places = {};
  std::string adapter = "";  // folder of an adapter for the model; "": none
};

// The config's model. If the config ties the head to the embedding but `folder` ("": none) stores two
// different values, the two are loaded as separate tensors, as in transformers 5, unless an override sets
// tie_word_embeddings. UsageError if no loaded shared object has the config's family, but the training that
// made `folder` or the adapter had a plugin with it. ContentsError: other tied tensors with different values,
// and the errors of make_model.
std::unique_ptr<Model> make_folder_model(const std::string& folder, const FolderConfig& config);

}  // namespace redco

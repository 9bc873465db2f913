// The model that a Hugging Face folder holds: what its config says, and what its files tell beyond that.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/model.h"

namespace redco {

struct ModelConfigText {
  std::string json, origin;                      // the config, and what messages call it
  std::map<std::string, std::string> overrides;  // key -> JSON text
  std::vector<std::string> ignore_keys;
};

// The config's model. Where it ties the head to the embedding and `folder` ("": none) holds the two with
// different values, they are read apart, as transformers 5 does, unless an override of tie_word_embeddings
// says otherwise. ContentsError: other tied tensors with values of their own; besides, what make_model
// throws.
std::unique_ptr<Model> make_folder_model(const std::string& folder, const ModelConfigText& config);

}  // namespace redco

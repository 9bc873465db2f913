// Model families of plugins (pipeline/shared_objects.h), in addition to the built-in ones of model.cpp.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/model.h"

namespace redco {

struct PluginFamily {
  std::string name;          // model_type in config.json
  std::string architecture;  // `architectures` in the config.json of a model made from model.arch
  std::function<std::unique_ptr<Model>(ModelConfig& config)> make;
  bool vocabulary = true;  // see family_has_vocabulary()
  std::string origin;      // the plugin's file, for messages
};

// Makes the family known to make_model() and model_families(), for the rest of the process. UsageError: the
// name is that of another family.
void add_family(const PluginFamily& family);
// Null: no plugin has this family. Valid for the rest of the process.
const PluginFamily* plugin_family(const std::string& name);

}  // namespace redco

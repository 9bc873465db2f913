// Adapters in PEFT's format: adapter_config.json and adapter_model.safetensors, whose tensors are named
// base_model.model.<module>.lora_A.weight and lora_B.weight. The tensors determine which layers have
// adapters, and their ranks.
#pragma once

#include <functional>
#include <string>

#include "nn/lora.h"

namespace redco::ckpt {

constexpr const char* kAdapterStem = "adapter_model";
constexpr const char* kAdapterConfig = "adapter_config.json";
constexpr const char* kAdapterPrefix = "base_model.model.";

struct PeftAdapter {
  std::string folder;
  LoraConfig config;     // target_modules as in the file; the tensors decide
  std::string base;      // base_model_name_or_path: a folder or an id of the hub; "": missing
  std::string revision;  // of an id; "": main
  std::string task_type;
};

// Whether the folder has an adapter_config.json.
bool is_adapter(const std::string& folder);

// Reads adapter_config.json. ContentsError: invalid, another kind of adapter than LoRA, a setting that redco
// doesn't support (DoRA, biases, layer replication, initial values that change the base).
PeftAdapter read_adapter(const std::string& folder);
PeftAdapter parse_adapter(const std::string& json, const std::string& where);
// The file as PEFT's save_pretrained writes it. `modules`: the layers with adapters.
std::string adapter_config_json(const PeftAdapter& adapter, const ModelParams& params,
                                const std::vector<std::string>& modules);

// The base model's folder: base_model_name_or_path as a path relative to the working folder or the adapter's
// folder. UsageError if it doesn't exist; the message says to set `how`.
std::string base_folder(const PeftAdapter& adapter, const std::string& how);

using CanonicalName = std::function<std::string(const std::string&)>;  // Model::canonical_name

// The layers with tensors in the adapter's file, in the model's order. ContentsError: an unknown layer,
// tensors of another shape or rank than in the model and the config, tensors that belong to no adapter.
std::vector<std::string> adapter_modules(const ModelParams& params, const PeftAdapter& adapter,
                                         const CanonicalName& canonical);

// Reads the adapters and the modules of modules_to_save into the trained parameters of `tree`. Collective.
void load_adapter(ParamTree& tree, const PeftAdapter& adapter, const CanonicalName& canonical);

}  // namespace redco::ckpt

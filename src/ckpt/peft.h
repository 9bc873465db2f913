// Adapters in PEFT's format: adapter_config.json and adapter_model.safetensors, whose tensors are named
// base_model.model.<module>.lora_A.weight and lora_B.weight. Which layers have adapters, and their ranks, are
// read from the tensors.
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
  LoraConfig config;  // target_modules as the file says; what counts are the tensors
  std::string base;   // base_model_name_or_path; "": none is named
  std::string task_type;
};

// Is there an adapter_config.json?
bool is_adapter(const std::string& folder);

// adapter_config.json. ContentsError: not sound, another kind of adapter than LoRA, a setting that redco
// doesn't compute (DoRA, biases, layer replication, initial values that change the base).
PeftAdapter read_adapter(const std::string& folder);
PeftAdapter parse_adapter(const std::string& json, const std::string& where);
// As PEFT's save_pretrained writes it. `modules`: the layers that have adapters.
std::string adapter_config_json(const PeftAdapter& adapter, const ModelParams& params,
                                const std::vector<std::string>& modules);

// The base's folder: base_model_name_or_path as a path, from here or from the adapter's folder. UsageError:
// there is none; the message says to name it with `how`.
std::string base_folder(const PeftAdapter& adapter, const std::string& how);

using CanonicalName = std::function<std::string(const std::string&)>;  // Model::canonical_name

// The layers that the adapter's file has tensors of, in the model's order. ContentsError: a layer that the
// model hasn't, tensors of another shape or rank than the model and the config say, tensors that are no
// adapter's.
std::vector<std::string> adapter_modules(const ModelParams& params, const PeftAdapter& adapter,
                                         const CanonicalName& canonical);

// Reads the adapters, and what modules_to_save holds, into the trained parameters of `tree`. Collective.
void load_adapter(ParamTree& tree, const PeftAdapter& adapter, const CanonicalName& canonical);

}  // namespace redco::ckpt

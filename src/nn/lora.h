// Low-rank adapters (LoRA; Hu et al. 2021): the weight W of a linear layer is frozen, and scale * B A is
// trained and added to it, A [r, in] and B [out, r]. Names, initial values and scaling are those of PEFT.
//
// Adapters are ordinary parameters. They are cut with their layer: along `out` only B, along `in` only A. The
// replicated one of the two is small. Adapters need no additional collective: the output of a row-split
// layer's adapter is Partial like that of the layer, and both are reduced together. A fused projection has
// one A, and a B for each part.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "nn/layers.h"
#include "nn/param_tree.h"

namespace redco {

struct LoraConfig {
  i64 rank = 8;
  double alpha = 8;         // B A is multiplied by alpha / rank
  double dropout = 0;       // of A's input, during training
  bool use_rslora = false;  // multiply by alpha / sqrt(rank) instead (Kalajdzievski 2023)
  // The adapted linear layers: ends of their names (c_attn, mlp.c_proj), whole names, or the single entry
  // all-linear. If empty, target_regex decides, which must match whole names.
  std::vector<std::string> target_modules;
  std::string target_regex;
  // Layers with another rank or alpha, by a regex that matches the end of the name.
  std::map<std::string, i64> rank_pattern;
  std::map<std::string, double> alpha_pattern;
  // Modules trained whole and saved with the adapters, by the characters at the end of their names: norm also
  // matches input_layernorm.
  std::vector<std::string> modules_to_save;

  i64 rank_of(const std::string& module) const;
  double scale_of(const std::string& module) const;
  bool saves(const std::string& parameter) const;  // whether modules_to_save includes it
};
constexpr const char* kAllLinear = "all-linear";

// Layers that can have an adapter, in order of definition: linears of two dims with a separate weight.
std::vector<std::string> linear_modules(const ModelParams& params);

// The layers that the config selects. `where`: the place cited in errors ("train.lora.target_modules
// (job.yaml:12)"). UsageError: a name or expression that matches no layer (with the nearest names), an
// embedding, a tied weight.
std::vector<std::string> lora_targets(const ModelParams& params, const LoraConfig& config,
                                      const std::string& where);

// The shortest names that select exactly these layers: ends of their names, or whole names.
std::vector<std::string> short_targets(const ModelParams& params, const std::vector<std::string>& modules);

// The parameters, followed by adapters for these modules. All parameters but adapters and modules_to_save are
// frozen. UsageError: rank < 1; modules_to_save that match nothing or a tied weight.
ModelParams with_lora(ModelParams params, const LoraConfig& config, const std::vector<std::string>& modules,
                      const std::string& where);

// Which parameters are trained, and which are not adapters.
std::vector<bool> trained_ones(const std::vector<ParamSpec>& specs);
std::vector<bool> no_adapters(const std::vector<ParamSpec>& specs);

// A layer in use.
struct AdaptedLayer {
  LayerName name;
  Tensor weight, bias;                               // a bias may be undefined
  std::function<Tensor(const Tensor&)> as_weight{};  // what was done to the weight (repeated heads), for B
};
// Layers with the same input: x W^T + bias, plus scale * dropout(x) A^T B^T where a layer has an adapter.
// Without dropout a layer and its adapter are one product.
Tensors adapted_layers(const ParamTree& p, const std::vector<AdaptedLayer>& layers, const Tensor& x,
                       const ApplyOptions& o);

// W += scale * B A for every adapted weight, in place; each rank updates its own part.
void merge_adapters(const ParamTree& p);

}  // namespace redco

// Low-rank adapters (LoRA; Hu et al. 2021): a linear layer's weight W stays as it is, and scale * B A is
// learned beside it, A [r, in] and B [out, r]. Names, initial values and scaling are those of PEFT.
//
// Adapters are parameters like others. They are cut with their layer: along `out` only B, along `in` only A.
// What is left whole is small, and no collective comes to those of the layer: what a row-split layer's
// adapter adds is Partial as the layer's own output is, and the two are reduced together. A fused projection
// has one A, and a B for each part.
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
  double alpha = 8;         // B A is scaled by alpha / rank
  double dropout = 0;       // of A's input, in training
  bool use_rslora = false;  // by alpha / sqrt(rank) (Kalajdzievski 2023)
  // Which linear layers: ends of their names (c_attn, mlp.c_proj) or whole ones; the one name all-linear;
  // else target_regex, which matches whole names.
  std::vector<std::string> target_modules;
  std::string target_regex;
  // Layers with a rank or alpha of their own, by a regex of the name's end.
  std::map<std::string, i64> rank_pattern;
  std::map<std::string, double> alpha_pattern;
  // Modules trained whole and saved with the adapters, by the letters that their names end with: norm is
  // input_layernorm, too.
  std::vector<std::string> modules_to_save;

  i64 rank_of(const std::string& module) const;
  double scale_of(const std::string& module) const;
  bool saves(const std::string& parameter) const;  // is it in modules_to_save?
};
constexpr const char* kAllLinear = "all-linear";

// Layers that can have an adapter, in order of definition: linear, two dims, with a weight of their own.
std::vector<std::string> linear_modules(const ModelParams& params);

// The layers that the config means. `where`: what complaints cite ("train.lora.target_modules
// (job.yaml:12)"). UsageError: a name or expression that means no layer (with the nearest names), an
// embedding, a tied weight.
std::vector<std::string> lora_targets(const ModelParams& params, const LoraConfig& config,
                                      const std::string& where);

// The shortest names that mean just these layers: the ends of their names, or the whole ones.
std::vector<std::string> short_targets(const ModelParams& params, const std::vector<std::string>& modules);

// The parameters with adapters for these modules behind them; all others are frozen but those of
// modules_to_save. UsageError: rank < 1, modules_to_save that name nothing or a tied weight.
ModelParams with_lora(ModelParams params, const LoraConfig& config, const std::vector<std::string>& modules,
                      const std::string& where);

// Which parameters are trained, and which are no adapters.
std::vector<bool> trained_ones(const std::vector<ParamSpec>& specs);
std::vector<bool> no_adapters(const std::vector<ParamSpec>& specs);

// y + scale * dropout(x) A^T B^T where the layer has an adapter, else y. `as_weight`: what was done to the
// layer's weight (repeated heads), for B.
Tensor add_adapter(const ParamTree& p, const LayerName& name, const Tensor& x, const Tensor& y,
                   const ApplyOptions& o, const std::function<Tensor(const Tensor&)>& as_weight = {});

// W += scale * B A for every adapted weight, in place; each rank its own part.
void merge_adapters(const ParamTree& p);

}  // namespace redco

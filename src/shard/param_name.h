// Parses a parameter's name: `model.layers.3.self_attn.c_attn.weight[q]` has the module
// `model.layers.3.self_attn.c_attn`, the leaf `weight` and the part `q`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace redco {

struct ParamName {
  std::string full;                // as given
  std::string base;                // without the part: the name of the fused Hugging Face tensor
  std::string part;                // "q" of `...weight[q]`, or empty
  std::vector<std::string> comps;  // components of the module, e.g. {model, layers, 3, self_attn, c_attn}
  std::string leaf;    // "weight", "bias", "kernel", ...; empty if the name has no leaf (`cls_token`)
  std::string module;  // comps joined by '.', with "[part]", so that each part has its own bias

  // The first n components joined by '.'.
  std::string prefix(std::size_t n) const;
};

ParamName parse_param_name(std::string_view name);

bool is_bias_leaf(std::string_view leaf);      // bias, b, beta, ...
bool is_index(std::string_view component);     // "0", "12"
bool is_numbered(std::string_view component);  // ends in a digit: "0", "block_3", "layer1"

// Lower-case words of a component, split at '_' and '-', at changes from lower to upper case, and around
// digits: "fc1" -> fc 1, "SelfAttention" -> self attention, "Wq" -> wq, "dense_h_to_4h" -> dense h to 4 h.
std::vector<std::string> words_of(std::string_view component);

}  // namespace redco

// Keys of a config that many decoders share.
#pragma once

#include <optional>
#include <vector>

#include "models/config.h"
#include "models/decoder/architecture.h"

namespace redco {

// Defaults of a family's configuration class.
struct DecoderDefaults {
  i64 vocab_size = 0, width = 0, inner = 0, layers = 0, heads = 0;  // 0: the config must have the key
  i64 max_length = 2048;
  i64 kv_heads = 0;     // 0: the number of heads
  bool grouped = true;  // num_key_value_heads is a key of the family
  i64 head_dim = 0;     // 0: hidden_size / num_attention_heads
  const char* eps_key = "rms_norm_eps";
  double eps = 1e-6;
  bool tied = false;
  i64 padding_row = -1;
  const char* activation = "silu";
};

// Sizes, heads, activation, attention_dropout, the norms' epsilon, tied embeddings and initializer_range,
// under LLaMA's names.
DecoderArchitecture read_usual(ModelConfig& c, const DecoderDefaults& d = {});

// The text model in the config of a model of images and texts: its text_config, of this model_type. The keys
// of the images and `others` are not read, which the log notes.
ModelConfig text_part(ModelConfig& c, const std::string& model_type, const std::vector<std::string>& others);

// The width of a head: `width`, the value of width_key, divided by the H heads of heads_key.
i64 read_head_width(ModelConfig& c, const char* heads_key, i64 H, const char* width_key, i64 width);

// layer_types, one text per layer, full_attention or `kind`: whether it is of this kind. *given becomes false
// if the key is absent.
std::vector<bool> read_sliding_layers(ModelConfig& c, i64 n_layers, bool* given,
                                      const char* kind = "sliding_attention");
// The same; without the key, all layers but every `pattern`-th slide (0: none).
std::vector<bool> read_sliding_layers_or(ModelConfig& c, i64 n_layers, i64 pattern);
// no_rope_layers: 1 for each layer with rotary positions, 0 for one without. Else all but every
// no_rope_layer_interval-th have them. empty_is_none: an empty list is like no list.
std::vector<bool> read_rotated_layers(ModelConfig& c, i64 n_layers, bool empty_is_none = false);
// A text per layer, "full_attention" or "attention", or a recurrence ("linear_attention" or "mamba"; "conv"
// for Mixer::conv), under
// one of the names; without it, all layers are recurrent.
std::vector<Mixer> read_mixers(ModelConfig& c, i64 n_layers, const std::vector<std::string>& names,
                               Mixer recurrent);
// sliding_window of all layers; 0 if it is null or, with fallback 0, absent.
i64 read_window(ModelConfig& c, i64 fallback);
void read_window_of_all(ModelConfig& c, DecoderArchitecture& s, i64 fallback);

// A soft cap; 0 if it is null.
double read_cap(ModelConfig& c, const char* key, double fallback);

// A mixture in every decoder_sparse_step-th layer, except in those of mlp_only_layers.
void read_mixture_layers(ModelConfig& c, DecoderArchitecture& s);
// The activation inside of experts; an error of hidden_act if they do not support it.
kernels::Unary read_expert_activation(ModelConfig& c, const std::string& name);
// Mamba-2: mamba_n_heads, mamba_d_state, ... inner: the width of all heads; 0: mamba_expand times
// hidden_size.
MambaSettings read_mamba_keys(ModelConfig& c, const DecoderArchitecture& s, i64 inner = 0);

// num_experts_per_tok, unless m.per_token is set, of at most m.count experts (the key count_key). Training
// has a load-balancing loss if output_router_logits is true. balance: the default of router_aux_loss_coef;
// nullopt: transformers' class of the family has no such loss.
void read_router(ModelConfig& c, MixtureSettings& m, const char* count_key, i64 per_token,
                 std::optional<double> balance = 0.001);

// Mixtral's mixture in all layers, with its names in files: a router block_sparse_moe.gate, and experts of
// the width s.inner with w1 (gate), w3 (up) and w2 (down). computed_router: the router's name in
// transformers' code. count, per_token: defaults.
MixtureSettings read_block_sparse_moe(ModelConfig& c, DecoderArchitecture& s, const char* computed_router,
                                      i64 count, i64 per_token);

// n_group and topk_group; limited: only the experts of the best groups may be chosen.
void read_groups(ModelConfig& c, MixtureSettings& m, bool limited);
// DeepSeek-V3's mixture: sigmoid scores with a correction, groups, shared experts.
struct SigmoidMixtureDefaults {
  const char *count_key = "n_routed_experts", *shared_key = "n_shared_experts";
  i64 count = 256, per_token = 8, inner = 2048;
  double scale = 2.5;
  bool normalized = true;
};
MixtureSettings read_sigmoid_mixture(ModelConfig& c, const std::string& activation,
                                     const SigmoidMixtureDefaults& d);
// first_k_dense_replace: the layers after that many have a mixture.
void read_dense_layers(ModelConfig& c, DecoderArchitecture& s, i64 fallback);
// mlp_layer_types, "dense" or "sparse" for each layer: the latter have a mixture. Without the key, all layers
// after the first `dense`.
void read_sparse_layers(ModelConfig& c, DecoderArchitecture& s, i64 dense);

}  // namespace redco

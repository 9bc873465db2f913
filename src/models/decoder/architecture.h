// The switches of the one decoder (decoder.h). A family is a function that reads a config into this table;
// docs/models.md lists the families by switch.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/arguments.h"
#include "models/delta_mixer.h"
#include "models/mamba_mixer.h"
#include "models/norms.h"
#include "models/rope_config.h"
#include "models/selective_mixer.h"
#include "models/short_conv_mixer.h"

namespace redco {

// Names of the parameters in files, without `.weight` and `.bias`. An empty name: the decoder has no such
// layer.
struct DecoderNames {
  std::string prefix = "model.";  // of all parameters but the head
  std::string embedding = "embed_tokens", positions{}, embedding_norm{}, project_in{}, layers = "layers",
              final_norm = "norm", project_out{}, head = "lm_head";
  // Before the head, without the prefix: NAME.dense, and NAME.norm after its activation (HeadLayer).
  std::string head_layer{};
  // Within a layer. The norms before and after a branch; with Block::post_norm the former follow the sums.
  std::string attention_norm = "input_layernorm", attention_out_norm{}, mlp_norm = "post_attention_layernorm",
              mlp_out_norm{};
  std::string qkv{};  // one tensor with all three, see QkvStorage
  std::string q = "self_attn.q_proj", k = "self_attn.k_proj", v = "self_attn.v_proj",
              out = "self_attn.o_proj";
  std::string q_norm = "self_attn.q_norm", k_norm = "self_attn.k_norm", sinks = "self_attn.sinks";
  std::string attention_gate{};                        // see gated_attention
  std::string mamba = "mamba", delta = "linear_attn";  // the mixers of Mamba-2 and Gated DeltaNet
  std::string conv = "conv", selective = "mixer";  // short convolutions, and selective state spaces (Mamba)
  std::string cross_attention_norm = "ln_cross_attn", cross_attention = "crossattention.";
  std::string gate_up{};  // one tensor: the rows of gate, then those of up
  std::string gate = "mlp.gate_proj", up = "mlp.up_proj", down = "mlp.down_proj";
  std::string xielu = "mlp.act_fn";  // the parameters of that activation
  // Ends of the names of stored tensors that are not parameters: causal masks, rotary frequencies.
  std::vector<std::string> buffers = {"rotary_emb.inv_freq"};
  // In files of a model with more parts: the name of this one ("language_model.", or none) and those of the
  // others, which are skipped. All of them may follow a "model.".
  std::string part{};
  std::vector<std::string> other_parts{};
};

// A mixture of experts (MLPs) in place of an MLP.
struct MixtureSettings {
  i64 count = 0, per_token = 0, inner = 0;
  kernels::Unary activation = kernels::Unary::silu;
  bool sigmoid = false;       // scores are sigmoids of the router's outputs; false: their softmax
  bool normalized = false;    // the weights of the chosen experts are divided by their sum
  double sum_eps = 0;         // added to that sum
  double least_sum = 0;       // the sum is at least this
  double scale = 1;           // of the weights
  bool scales_input = false;  // the weight of a token's one expert scales its input, not its output
  // SparseMixer (Liu et al. 2023) chooses and weighs two experts in turn, each by a softmax over the experts
  // whose logits are nearly as large as the largest one; the number is the relative distance. See
  // sparse_mixer().
  std::optional<double> sparse_mixer = std::nullopt;
  // groups > 1: only the experts of the best `chosen_groups` groups may be chosen. A group's score is the
  // sum of its `group_best` largest scores.
  i64 groups = 1, chosen_groups = 1, group_best = 1;
  bool gated = true;  // of the experts and the shared MLP; false: `activation` is relu, squared
  i64 latent = 0;     // > 0: the experts' width, to and from which tokens are projected
  bool latent_bias = false;
  i64 shared_inner = 0;     // > 0: an MLP that processes every token
  bool beside_mlp = false;  // the decoder's MLP processes every token too
  bool shared_bias = false;
  // > 0: gpt-oss, see ExpertsOptions. The router and all layers of the experts then have biases, and files
  // have the experts of a layer in one tensor, (experts, in, out), with rows of gate and up in turn.
  double limit = 0, alpha = 1;
  // The coefficient of the load-balancing loss; nullopt: training has none.
  std::optional<double> balance = std::nullopt;
  // Names within a layer.
  std::string router = "mlp.gate", experts = "mlp.experts", gate = "gate_proj", up = "up_proj",
              down = "down_proj";
  std::string correction{};             // a buffer [count], added to the scores for choosing only
  bool correction_row = false;          // its shape is [1, count]
  std::string shared{}, shared_gate{};  // the latter: a linear layer whose sigmoid scales the shared MLP
  // Not empty: files hold the gates and ups of all experts in one tensor `stack_in` [E, 2 I, C], and the
  // downs in `stack_out` [E, C, I].
  std::string stack_in{}, stack_out{};
  bool stack_transposed = false;  // they are [E, C, 2 I] and [E, I, C], and their names have no `.weight`
  std::string latent_in{}, latent_out{};
  // Where transformers computes with other names than it stores; empty: the same.
  std::string computed_router{}, computed_experts = "mlp.experts";
};

// Multi-head latent attention (DeepSeek-V2): keys and values are projected from one latent vector per token.
struct LatentSettings {
  i64 q_rank = 0;  // of the latent queries; 0: queries are projected from the input
  i64 rank = 0, nope_dim = 0, rope_dim = 0, value_dim = 0;
  double eps = 1e-6;  // of the norms of the latent vectors
  bool bias = false;  // of the projections to the latent vectors and of the output
};

enum class Block : std::uint8_t {
  pre_norm,   // x + attention(norm(x)), then the same with the MLP; a missing norm is left out
  post_norm,  // norm(x + attention(x)), then the same with the MLP
  parallel,   // x + attention(norm(x)) + mlp(norm(x)); without mlp_norm both read the same norm
};

enum class QkvStorage : std::uint8_t {
  separate,
  parts,     // all queries, all keys, all values
  quarters,  // a quarter of all queries, of all values, of all keys; the next quarters (CodeGen)
  groups,    // for each key head: its queries, its key, its value
};

// A layer before the head: norm(activation(dense(x))).
struct HeadLayer {
  std::string activation = "gelu";
  bool bias = false;
};

// What mixes the tokens of a layer.
enum class Mixer : std::uint8_t { attention, mamba, delta, conv, selective, attention_and_mamba, none };
inline bool is_recurrent(Mixer m) { return m != Mixer::attention && m != Mixer::none; }
inline bool attends(Mixer m) { return m == Mixer::attention || m == Mixer::attention_and_mamba; }

struct DecoderLayer {
  Mixer mixer = Mixer::attention;
  bool mlp = true;             // an MLP, or a mixture
  i64 window = 0;              // the number of last tokens that a query attends to; 0: all
  i64 chunk = 0;               // > 0: a query attends to the tokens of its chunk of this many positions
  int rope = 0;                // index in `ropes`; -1: no rotary positions
  bool attention_norm = true;  // DecoderNames::attention_norm, if it is not empty
  bool head_norms = true;      // DecoderArchitecture::head_norms
  bool grows = true;           // DecoderArchitecture::query_growth
  double score_divisor = 1;    // of the scores, besides score_scale
  bool mixture = false;        // a mixture of experts in place of the MLP
};

struct DecoderArchitecture {
  std::string family;
  DecoderNames names;

  // Sizes.
  i64 vocab_size = 0, max_length = 0, width = 0, inner = 0;
  bool extra_layers = false;  // files may have layers after the last one, which are ignored
  bool unlimited = false;     // positions have no end (ALiBi): max_length is the length of training
  i64 embedding_width = 0;    // of embedding and head; another one than `width` is projected
  i64 padding_row = -1;
  bool transposed = false;                 // linear layers are stored (in, out)
  double std = 0.02, residual_std = 0.02;  // of initial weights; residual: of what is added to the stream

  // Embedding and head.
  bool tied = false, head_bias = false;
  i64 head_rows = 0;                      // > 0: the head is a layer of this many outputs that score a text,
  bool scores_tokens = false;             // or each token
  double head_dropout = 0;                // of its input
  HeadLayer head_layer;                   // with DecoderNames::head_layer
  i64 position_rows = 0;                  // of the table of learned positions
  bool sinusoids = false;                 // the rows are sinusoids of tensor2tensor, which no file has
  i64 position_offset = 0;                // the row of the first position
  bool masked_positions = false;          // positions are counted from the mask (OPT)
  double embedding_scale = 1;             // of the tokens' embeddings, not of learned positions
  double logit_scale = 1, logit_cap = 0;  // cap * tanh(x / cap)

  // Blocks.
  Block block = Block::pre_norm;
  NormSettings norm;
  bool final_norm = true;
  bool states_after_layers = false;  // hidden states are the outputs of layers (Mamba), not their inputs
  bool stream_from_norm = false;     // the normed input of a branch continues the stream (BLOOM's option)
  double residual_scale = 1;         // of what is added to the stream
  double attention_in_scale = 1, attention_out_scale = 1;  // of attention's input and output
  double gate_scale = 1, mlp_out_scale = 1;  // of an MLP's gate, before its activation, and output
  double embedding_dropout = 0, attention_dropout = 0;
  double attention_out_dropout = 0, mlp_out_dropout = 0;  // of what is added to the stream
  bool dropout_of_sum = false;  // Block::parallel: one dropout of both branches' sum
  std::vector<DecoderLayer> layers;

  // Attention.
  bool bidirectional = false;  // tokens attend to both sides: an encoder
  HeadGeometry heads;
  QkvStorage qkv = QkvStorage::separate;
  bool qkv_bias = false, out_bias = false;
  double clip_qkv = 0;  // > 0: queries, keys and values are limited to [-clip, clip]
  HeadNormSettings head_norms;
  double score_scale = 1, score_cap = 0;
  // Queries grow with their position p: times 1 + growth * log(1 + floor((p + first) / growth_length)).
  double query_growth = 0;
  i64 query_growth_length = 1, query_growth_first = 0;
  std::vector<Rope> ropes;
  double alibi = 0;    // > 0: ALiBi (Press et al. 2022) with its slopes times this
  bool sinks = false;  // a score per head that takes part in the softmax without a value
  std::optional<LatentSettings> latent;
  bool cross = false;  // attention to a memory of the decoder's width

  // The result times a sigmoid, of the layer DecoderNames::attention_gate. Without the name, files hold the
  // layer's rows after each head's queries.
  bool gated_attention = false;
  std::optional<MambaSettings> mamba;
  std::optional<DeltaSettings> delta;
  std::optional<ShortConvSettings> conv;
  std::optional<SelectiveSettings> selective;

  // MLP.
  bool gated = true, mlp_bias = false;
  double inner_dropout = 0;  // of the input of the last layer
  std::string activation = "silu";
  bool xielu = false;  // in place of `activation`, without a gate
  std::optional<MixtureSettings> mixture;
};

}  // namespace redco

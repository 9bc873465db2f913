// DeepSeek-V2 and V3 (DeepSeek-AI 2024): latent attention; mixtures of many small experts after the first
// layers, in groups of which a token may choose a few, and an MLP that all tokens share.
#include <cmath>

#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

namespace {

LatentSettings read_latent(ModelConfig& c) {
  LatentSettings l;
  l.q_rank = c.mentions("q_lora_rank") && !c.has("q_lora_rank") ? 0 : c.integer_or("q_lora_rank", 1536);
  l.rank = c.integer_or("kv_lora_rank", 512);
  l.nope_dim = c.integer_or("qk_nope_head_dim", 128);
  l.rope_dim = c.integer_or("qk_rope_head_dim", 64, 2);
  l.value_dim = c.integer_or("v_head_dim", 128);
  l.bias = c.boolean_or("attention_bias", false);
  c.inert({"qk_head_dim", "head_dim"});  // sums of these
  return l;
}

}  // namespace

DecoderArchitecture read_deepseek(ModelConfig& c) {
  const bool third = c.text_or("model_type", "deepseek_v3") == "deepseek_v3";
  DecoderArchitecture s = read_usual(c, {.max_length = third ? 4096 : 2048});
  s.latent = read_latent(c);
  s.heads = {s.heads.n_head, s.heads.n_head, s.latent->nope_dim + s.latent->rope_dim};
  const bool interleaved = !third || c.boolean_or("rope_interleave", true);
  s.ropes = {read_rope(c, s.latent->rope_dim, s.max_length, {.interleaved = interleaved})};
  const double magnitude = s.ropes[0].score_magnitude;
  s.score_scale = magnitude * magnitude / std::sqrt(static_cast<double>(s.heads.head_dim));

  MixtureSettings m;
  if (third) {
    m = read_sigmoid_mixture(c, s.activation, {});
    c.expect("topk_method", {"\"noaux_tc\""});
    c.expect("scoring_func", {"\"sigmoid\""});
    // Further layers that predict later tokens; transformers does not load them.
    c.inert({"num_nextn_predict_layers", "num_mtp_layers", "ep_size"});
    s.extra_layers = true;
  } else {
    m.activation = read_expert_activation(c, s.activation);
    m.count = c.integer_as_or({"n_routed_experts", "num_experts"}, 64);
    read_router(c, m, "n_routed_experts", 1, std::nullopt);
    m.inner = c.integer_or("moe_intermediate_size", 1407);
    m.scale = c.number_or("routed_scaling_factor", 1);
    m.shared = "mlp.shared_experts";
    m.shared_inner = m.inner * c.integer_or("n_shared_experts", 2);
    const std::string method = c.text_or("topk_method", "greedy");
    c.expect("topk_method", {"\"greedy\"", "\"group_limited_greedy\""});
    read_groups(c, m, method == "group_limited_greedy");
    c.expect("scoring_func", {"\"softmax\""});
    s.mlp_bias = c.boolean_or("mlp_bias", false);
    m.shared_bias = s.mlp_bias;
    c.inert({"norm_topk_prob", "seq_aux", "aux_loss_alpha", "ep_size"});  // transformers does not read them
  }
  c.expect("moe_layer_freq", {"1"});
  read_dense_layers(c, s, third ? 3 : 0);
  s.mixture = m;
  return s;
}

}  // namespace redco

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

void read_groups(ModelConfig& c, MixtureSettings& m, bool limited) {
  const i64 groups = c.integer_or("n_group", 1), kept = c.integer_or("topk_group", 1);
  if (!limited) return;
  m.groups = groups;
  m.chosen_groups = kept;
  if (m.count % groups != 0) c.fail("n_group", "expected a divisor of n_routed_experts");
  if (kept > groups) c.fail("topk_group", "expected at most n_group");
  if (kept * (m.count / groups) < m.per_token)
    c.fail("topk_group", "the chosen groups have fewer experts than num_experts_per_tok");
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
  m.activation = read_expert_activation(c, s.activation);
  m.count =
      c.integer_as_or({"n_routed_experts", third ? "num_local_experts" : "num_experts"}, third ? 256 : 64);
  read_router(c, m, "n_routed_experts", third ? 8 : 1);
  m.inner = c.integer_or("moe_intermediate_size", third ? 2048 : 1407);
  m.scale = c.number_or("routed_scaling_factor", third ? 2.5 : 1);
  m.shared = "mlp.shared_experts";
  m.shared_inner = m.inner * c.integer_or("n_shared_experts", third ? 1 : 2);
  if (third) {
    m.sigmoid = true;
    m.correction = "mlp.gate.e_score_correction_bias";
    m.normalized = c.boolean_or("norm_topk_prob", true);
    m.sum_eps = 1e-20;
    m.group_best = 2;
    read_groups(c, m, true);
    if (m.groups > 1 && m.count / m.groups < 2) c.fail("n_group", "expected at least 2 experts in a group");
    c.expect("topk_method", {"\"noaux_tc\""});
    c.expect("scoring_func", {"\"sigmoid\""});
    // Further layers that predict later tokens; transformers does not load them.
    c.inert({"num_nextn_predict_layers", "num_mtp_layers", "ep_size"});
    s.extra_layers = true;
  } else {
    const std::string method = c.text_or("topk_method", "greedy");
    c.expect("topk_method", {"\"greedy\"", "\"group_limited_greedy\""});
    read_groups(c, m, method == "group_limited_greedy");
    c.expect("scoring_func", {"\"softmax\""});
    s.mlp_bias = c.boolean_or("mlp_bias", false);
    m.shared_bias = s.mlp_bias;
    c.inert({"norm_topk_prob", "seq_aux", "aux_loss_alpha", "ep_size"});  // transformers does not read them
  }
  c.expect("moe_layer_freq", {"1"});
  const i64 dense = c.integer_or("first_k_dense_replace", third ? 3 : 0, 0);
  for (size_t i = 0; i < s.layers.size(); ++i) s.layers[i].mixture = static_cast<i64>(i) >= dense;
  s.mixture = m;
  return s;
}

}  // namespace redco

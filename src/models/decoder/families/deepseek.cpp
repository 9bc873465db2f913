// DeepSeek-V2 and V3 (DeepSeek-AI 2024): latent attention; mixtures of many small experts after the first
// layers, in groups of which a token may choose a few, and an MLP that all tokens share. GLM-4.7-Flash
// (`glm4_moe_lite`): V3 with its mixtures listed by layer. Youtu-LLM (2025): V3's attention with MLPs.
// MiniCPM3 (OpenBMB 2024): likewise, with multipliers of embedding, residual stream and logits.
#include <cmath>

#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

namespace {

LatentSettings read_latent(ModelConfig& c, const LatentSettings& d) {
  LatentSettings l;
  l.q_rank = c.mentions("q_lora_rank") && !c.has("q_lora_rank") ? 0 : c.integer_or("q_lora_rank", d.q_rank);
  l.rank = c.integer_or("kv_lora_rank", d.rank);
  l.nope_dim = c.integer_or("qk_nope_head_dim", d.nope_dim);
  l.rope_dim = c.integer_or("qk_rope_head_dim", d.rope_dim, 2);
  l.value_dim = c.integer_or("v_head_dim", d.value_dim);
  l.bias = c.boolean_or("attention_bias", false);
  c.inert({"qk_head_dim", "head_dim"});  // sums of these
  return l;
}

// Whether rotary positions rotate interleaved pairs. by_key: unless rope_interleave is false.
enum class LatentRotation : std::uint8_t { pairs, halves, by_key };

void read_latent_attention(
    ModelConfig& c, DecoderArchitecture& s, LatentRotation rotation,
    const LatentSettings& d = {
        .q_rank = 1536, .rank = 512, .nope_dim = 128, .rope_dim = 64, .value_dim = 128}) {
  s.latent = read_latent(c, d);
  s.heads = {s.heads.n_head, s.heads.n_head, s.latent->nope_dim + s.latent->rope_dim};
  const bool interleaved = rotation == LatentRotation::pairs ||
                           (rotation == LatentRotation::by_key && c.boolean_or("rope_interleave", true));
  s.ropes = {read_rope(c, s.latent->rope_dim, s.max_length, {.interleaved = interleaved})};
  const double magnitude = s.ropes[0].score_magnitude;
  s.score_scale = magnitude * magnitude / std::sqrt(static_cast<double>(s.heads.head_dim));
}

}  // namespace

DecoderArchitecture read_deepseek(ModelConfig& c) {
  const bool third = c.text_or("model_type", "deepseek_v3") == "deepseek_v3";
  DecoderArchitecture s = read_usual(c, {.max_length = third ? 4096 : 2048});
  read_latent_attention(c, s, third ? LatentRotation::by_key : LatentRotation::pairs);
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

DecoderArchitecture read_glm4_moe_lite(ModelConfig& c) {
  DecoderArchitecture s = read_usual(c, {.max_length = 202752, .kv_heads = 20, .eps = 1e-5});
  read_latent_attention(c, s, LatentRotation::by_key,
                        {.q_rank = 768, .rank = 512, .nope_dim = 192, .rope_dim = 64, .value_dim = 256});
  s.mixture =
      read_sigmoid_mixture(c, s.activation, {.count = 64, .per_token = 4, .inner = 1536, .scale = 1.8});
  read_sparse_layers(c, s, 1);
  c.inert({"num_nextn_predict_layers", "num_mtp_layers", "first_k_dense_replace"});
  c.expect("topk_method", {"\"noaux_tc\""});
  s.extra_layers = true;
  return s;
}

DecoderArchitecture read_youtu(ModelConfig& c) {
  DecoderArchitecture s = read_usual(c, {.max_length = 131072, .tied = true});
  read_latent_attention(c, s, LatentRotation::by_key);
  c.inert({"embedding_initializer_range"});
  return s;
}

DecoderArchitecture read_minicpm3(ModelConfig& c) {
  DecoderArchitecture s = read_usual(c, {.max_length = 32768, .kv_heads = 40, .eps = 1e-5, .tied = true});
  // Absent or null, the three have defaults from the sizes.
  const auto number = [&](const char* key, double fallback, double none) {
    return c.number_or(key, c.mentions(key) ? none : fallback);
  };
  const i64 H = s.heads.n_head;
  read_latent_attention(
      c, s, LatentRotation::halves,
      {.q_rank = 768, .rank = 256, .nope_dim = 64, .rope_dim = 32, .value_dim = s.width / H});
  const double n = std::sqrt(static_cast<double>(s.layers.size())), width = static_cast<double>(s.width);
  s.embedding_scale = c.number_or("scale_emb", 12);
  s.residual_scale = number("scale_depth", 1.4, n) / n;
  s.logit_scale = number("dim_model_base", 256, width) / width;
  s.mlp_bias = c.boolean_or("mlp_bias", false);
  return s;
}

}  // namespace redco

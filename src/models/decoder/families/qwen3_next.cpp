// Qwen3-Next (Qwen team 2025): Gated DeltaNet and gated attention in turn, norms whose weights are stored
// minus one, rotary positions on a quarter of each head, mixtures with a shared MLP. Qwen3.5's text models:
// the same with other names, and with an MLP or the mixture.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/decoder/decoder.h"
#include "models/decoder/families.h"
#include "models/decoder/read.h"
#include "models/families.h"

namespace redco {

namespace {

DeltaSettings read_delta(ModelConfig& c, const DecoderArchitecture& s) {
  DeltaSettings d;
  d.heads = c.integer_or("linear_num_value_heads", 32);
  d.head_dim = c.integer_or("linear_value_head_dim", 128);
  d.key_heads = c.integer_or("linear_num_key_heads", 16);
  d.key_dim = c.integer_or("linear_key_head_dim", 128);
  d.taps = c.integer_or("linear_conv_kernel_dim", 4);
  if (d.heads % d.key_heads != 0)
    c.fail("linear_num_key_heads", fmt::format("expected a divisor of linear_num_value_heads={}", d.heads));
  d.eps = s.norm.eps;
  d.activation = s.activation;
  d.std = s.std;
  return d;
}

// What Qwen3-Next and Qwen3.5 share: full attention in every full_attention_interval-th layer, or
// layer_types.
DecoderArchitecture read_delta_hybrid(ModelConfig& c, const DecoderDefaults& defaults) {
  DecoderArchitecture s = read_usual(c, defaults);
  s.norm.unit_offset = true;
  s.head_norms = {HeadNormSettings::Over::head, s.norm};
  s.gated_attention = true;
  s.qkv_bias = s.out_bias = c.boolean_or("attention_bias", false);
  s.ropes = {
      read_rope(c, s.heads.head_dim, s.max_length, {.share_key = "partial_rotary_factor", .share = 0.25})};
  s.delta = read_delta(c, s);
  const i64 interval = c.integer_or("full_attention_interval", 4), n = static_cast<i64>(s.layers.size());
  const std::vector<Mixer> mixers = read_mixers(c, n, {"layer_types"}, Mixer::delta);
  for (i64 i = 0; i < n; ++i)
    s.layers[i].mixer = c.has("layer_types")      ? mixers[i]
                        : (i + 1) % interval == 0 ? Mixer::attention
                                                  : Mixer::delta;
  s.names.other_parts = {"mtp."};  // layers that predict later tokens, which transformers skips too
  return s;
}

// num_experts experts, and an MLP that all tokens share.
MixtureSettings read_next_mixture(ModelConfig& c, const DecoderArchitecture& s, i64 count, i64 per_token) {
  MixtureSettings m;
  m.count = count;
  m.activation = read_expert_activation(c, s.activation);
  read_router(c, m, "num_experts", per_token);
  m.inner = c.integer_or("moe_intermediate_size", 512);
  m.normalized = true;
  m.shared_inner = c.integer_or("shared_expert_intermediate_size", 512);
  m.shared = "mlp.shared_expert";
  m.shared_gate = "mlp.shared_expert_gate";
  return m;
}

bool has_mixture(ModelConfig& c) { return c.text_or("model_type", "").find("_moe") != std::string::npos; }

DecoderArchitecture read_qwen3_5_with(ModelConfig& c, DecoderDefaults defaults) {
  const bool mixture = has_mixture(c);
  if (mixture) {
    defaults.inner = 1;  // the config has no intermediate_size
    defaults.kv_heads = 2;
  }
  DecoderArchitecture s = read_delta_hybrid(c, defaults);
  s.delta->by_key_heads = false;
  if (!mixture) return s;
  s.mixture = read_next_mixture(c, s, c.integer_as_or({"num_experts", "num_local_experts"}, 256), 8);
  for (DecoderLayer& l : s.layers) l.mixture = true;
  return s;
}

constexpr DecoderDefaults kQwen35 = {.max_length = 32768, .kv_heads = 4, .head_dim = 256};

DecoderArchitecture read_qwen3_5_part(ModelConfig& c) {
  const bool mixture = has_mixture(c);
  DecoderDefaults d = kQwen35;
  d.vocab_size = 248320;
  d.width = mixture ? 2048 : 4096;
  d.inner = 12288;
  d.layers = mixture ? 40 : 32;
  d.heads = 16;
  DecoderArchitecture s = read_qwen3_5_with(c, d);
  s.names.part = "language_model.";
  s.names.other_parts.push_back("visual.");
  return s;
}

}  // namespace

DecoderArchitecture read_qwen3_next(ModelConfig& c) {
  DecoderArchitecture s = read_delta_hybrid(c, {.max_length = 32768, .kv_heads = 2, .head_dim = 256});
  const i64 count = c.integer_as_or({"num_experts", "num_local_experts"}, 512, 0);
  if (count == 0) {
    c.inert({"num_experts_per_tok", "moe_intermediate_size", "shared_expert_intermediate_size",
             "norm_topk_prob", "output_router_logits", "router_aux_loss_coef", "decoder_sparse_step",
             "mlp_only_layers"});
    return s;
  }
  s.mixture = read_next_mixture(c, s, count, 10);
  s.mixture->normalized = c.boolean_or("norm_topk_prob", true);
  read_mixture_layers(c, s);
  return s;
}

DecoderArchitecture read_qwen3_5(ModelConfig& c) { return read_qwen3_5_with(c, kQwen35); }

std::unique_ptr<Model> make_qwen3_5(ModelConfig& c) {
  const bool mixture = has_mixture(c);
  ModelConfig text = text_part(c, mixture ? "qwen3_5_moe_text" : "qwen3_5_text",
                               {"video_token_id", "vision_start_token_id", "vision_end_token_id"});
  return make_decoder_model(text, read_qwen3_5_part,
                            mixture ? "Qwen3_5MoeForCausalLM" : "Qwen3_5ForCausalLM");
}

}  // namespace redco

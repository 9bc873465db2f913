// The decoders of ModernBERT (Weller et al. 2025, Ettin): its gated MLPs, windows and two rotary bases; no
// norm before the first attention, and a layer between the final norm and the logits.
#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_modernbert_decoder(ModelConfig& c) {
  DecoderArchitecture s = read_usual(c, {.max_length = 8192,
                                         .grouped = false,
                                         .eps_key = "norm_eps",
                                         .eps = 1e-5,
                                         .tied = true,
                                         .padding_row = 50283,
                                         .activation = nullptr});
  s.names.embedding = "embeddings.tok_embeddings";
  s.names.embedding_norm = "embeddings.norm";
  s.names.final_norm = "final_norm";
  s.names.head = "decoder";
  s.names.head_layer = "lm_head";
  s.names.attention_norm = "attn_norm";
  s.names.mlp_norm = "mlp_norm";
  s.names.q = "attn.q_proj";
  s.names.k = "attn.k_proj";
  s.names.v = "attn.v_proj";
  s.names.out = "attn.Wo";
  s.names.gate_up = "mlp.Wi";
  s.names.down = "mlp.Wo";
  s.norm = {.rms = false, .bias = c.boolean_or("norm_bias", false), .eps = s.norm.eps};
  s.qkv_bias = s.out_bias = c.boolean_or("attention_bias", false);
  s.mlp_bias = c.boolean_or("mlp_bias", false);
  s.head_bias = c.boolean_or("decoder_bias", true);
  s.activation = c.activation_or("hidden_activation", "gelu");
  s.head_layer = {.activation = c.activation_or("classifier_activation", "gelu"),
                  .bias = c.boolean_or("classifier_bias", false)};
  s.embedding_dropout = c.rate_or("embedding_dropout", 0);
  s.attention_out_dropout = s.attention_dropout;
  s.inner_dropout = c.rate_or("mlp_dropout", 0);
  const LayerRopes ropes =
      read_layer_ropes(c, s.heads.head_dim, s.max_length, {.theta = 160000, .theta_key = "global_rope_theta"},
                       {.theta = 10000, .theta_key = "local_rope_theta"});
  s.ropes = {ropes.full, ropes.sliding};
  const i64 local = c.mentions("local_attention") && !c.has("local_attention")
                        ? 0
                        : c.integer_or("local_attention", 128, 2);
  const i64 every = c.integer_or("global_attn_every_n_layers", 3);
  bool given;
  const std::vector<bool> slides = read_sliding_layers(c, static_cast<i64>(s.layers.size()), &given);
  for (size_t i = 0; i < slides.size(); ++i)
    if (given ? slides[i] : i % every != 0) s.layers[i] = {.window = local / 2, .rope = 1};
  if (!s.layers.empty()) s.layers[0].attention_norm = false;
  // Of another head, of initial weights, and what other keys say too.
  c.inert(
      {"classifier_dropout", "initializer_cutoff_factor", "sliding_window", "cls_token_id", "sep_token_id"});
  return s;
}

}  // namespace redco

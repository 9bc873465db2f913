// ModernBERT (Warner et al. 2024): norms before each part, gated MLPs, rotary positions; a layer with full
// attention and then some that see only the tokens nearby, with another rotary base.
#include <fmt/format.h>

#include "models/decoder/read.h"
#include "models/encoder/encoder.h"
#include "models/encoder/families.h"

namespace redco {

EncoderArchitecture read_modernbert(ModelConfig& c) {
  EncoderArchitecture s;
  s.family = "modernbert";
  s.names.prefix = "model.";
  s.names.words = "embeddings.tok_embeddings";
  s.names.embedding_norm = "embeddings.norm";
  s.names.final_norm = "final_norm";
  s.names.qkv = "attn.Wqkv";
  s.names.out = "attn.Wo";
  s.names.attention_norm = "attn_norm";
  s.names.gate_up = "mlp.Wi";
  s.names.down = "mlp.Wo";
  s.names.mlp_norm = "mlp_norm";
  read_encoder_task(c, "ModernBert", s);
  s.vocab_size = c.integer("vocab_size");
  const i64 padding = s.vocab_size > 50283 ? 50283 : -1;
  s.padding_row = c.mentions("pad_token_id") ? c.padding_row(s.vocab_size) : padding;
  s.max_length = c.integer_or("max_position_embeddings", 8192);
  s.width = c.integer_or("hidden_size", 768);
  const i64 n = c.integer_or("num_hidden_layers", 22, 0), H = c.integer_or("num_attention_heads", 12);
  s.inner = c.integer_or("intermediate_size", 1152);
  s.heads = {H, H, read_head_width(c, "num_attention_heads", H, "hidden_size", s.width)};
  s.pre_norm = true;
  s.first_norm = false;
  s.norm = {.rms = false, .bias = c.boolean_or("norm_bias", false), .eps = c.positive_or("norm_eps", 1e-5)};
  s.qkv_bias = s.out_bias = c.boolean_or("attention_bias", false);
  s.mlp_bias = c.boolean_or("mlp_bias", false);
  s.gated = true;
  s.activation = c.activation_or("hidden_activation", "gelu");
  s.embedding_dropout = c.rate_or("embedding_dropout", 0);
  s.attention_dropout = c.rate_or("attention_dropout", 0);
  s.inner_dropout = c.rate_or("mlp_dropout", 0);
  s.std = c.number_or("initializer_range", 0.02);
  const LayerRopes ropes =
      read_layer_ropes(c, s.heads.head_dim, s.max_length, {.theta = 160000, .theta_key = "global_rope_theta"},
                       {.theta = 10000, .theta_key = "local_rope_theta"});
  s.ropes = {ropes.full, ropes.sliding};
  const i64 local = c.integer_or("local_attention", 128),
            every = c.integer_or("global_attn_every_n_layers", 3);
  bool given;
  const std::vector<bool> slides = read_sliding_layers(c, n, &given);
  add_encoder_layers(s, "layers", n);
  for (i64 i = 0; i < n; ++i) {
    const bool near = given ? slides[i] : i % every != 0;
    s.layers[i].rope = near ? 1 : 0;
    s.layers[i].reach = near ? local / 2 : -1;
  }
  const std::string activation = c.activation_or("classifier_activation", "gelu");
  const bool bias = c.boolean_or("classifier_bias", false);
  s.masked = {.dense = "head.dense",
              .norm = "head.norm",
              .decoder = "decoder",
              .bias = c.boolean_or("decoder_bias", true) ? "decoder.bias" : "",
              .activation = activation,
              .dense_bias = bias,
              .tied = s.tied};
  c.expect("classifier_pooling", {"\"cls\"", "\"mean\""});
  s.classes = {.dense = "head.dense",
               .out = "classifier",
               .activation = activation,
               .norm = "head.norm",
               .dense_bias = bias,
               .mean = c.text_or("classifier_pooling", "cls") == "mean",
               .dropout = c.rate_or("classifier_dropout", 0)};
  s.tags = {.out = "classifier", .dropout = s.classes->dropout, .dense = true};
  s.spans = s.tags;
  // sparse_prediction computes fewer logits. The others choose an implementation or initial weights, or are
  // those of another code.
  c.inert({"sparse_prediction", "sparse_pred_ignore_index", "deterministic_flash_attn", "reference_compile",
           "repad_logits_with_grad", "initializer_cutoff_factor", "layer_norm_eps",
           "position_embedding_type"});
  return s;
}

}  // namespace redco

// BioGPT (Luo et al. 2022): norms before each part, learned positions from row 2 on, scaled embeddings. XGLM
// (Lin et al. 2021): the same with sinusoids.
#include <cmath>

#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_biogpt(ModelConfig& c) {
  DecoderArchitecture s = read_usual(c, {.max_length = 1024,
                                         .grouped = false,
                                         .eps_key = "layer_norm_eps",
                                         .eps = 1e-12,
                                         .tied = true,
                                         .padding_row = 1,
                                         .activation = "gelu"});
  s.names = {.prefix = "biogpt.",
             .positions = "embed_positions",
             .final_norm = "layer_norm",
             .head = "output_projection",
             .attention_norm = "self_attn_layer_norm",
             .mlp_norm = "final_layer_norm",
             .out = "self_attn.out_proj",
             .up = "fc1",
             .down = "fc2"};
  s.norm = {.rms = false, .bias = true, .eps = 1e-5};  // torch.nn.LayerNorm's; transformers reads no key
  s.position_offset = 2;
  s.position_rows = s.max_length + s.position_offset;
  for (DecoderLayer& l : s.layers) l.rope = -1;
  if (c.boolean_or("scale_embedding", true)) s.embedding_scale = std::sqrt(static_cast<double>(s.width));
  s.qkv_bias = s.out_bias = s.mlp_bias = true;
  s.gated = false;
  s.embedding_dropout = s.attention_out_dropout = s.mlp_out_dropout = c.rate_or("hidden_dropout_prob", 0.1);
  s.attention_dropout = c.rate_or("attention_probs_dropout_prob", 0.1);
  c.expect("activation_dropout", {"0", "0.0"});
  c.expect("layerdrop", {"0", "0.0"});
  return s;
}

DecoderArchitecture read_xglm(ModelConfig& c) {
  DecoderArchitecture s;
  s.family = "xglm";
  s.names = {.final_norm = "layer_norm",
             .attention_norm = "self_attn_layer_norm",
             .mlp_norm = "final_layer_norm",
             .out = "self_attn.out_proj",
             .up = "fc1",
             .down = "fc2",
             .buffers = {"embed_positions.weights"}};
  s.vocab_size = c.integer("vocab_size");
  s.padding_row = c.mentions("pad_token_id") ? c.padding_row(s.vocab_size) : 1;
  s.max_length = c.integer_or("max_position_embeddings", 2048);
  s.width = c.integer_as({"d_model", "hidden_size"});
  s.inner = c.integer("ffn_dim");
  s.layers.resize(c.integer_as({"num_layers", "num_hidden_layers"}, 0));
  for (DecoderLayer& l : s.layers) l.rope = -1;
  const i64 H = c.integer_as({"attention_heads", "num_attention_heads"});
  s.heads = {H, H, read_head_width(c, "attention_heads", H, "d_model", s.width)};
  s.score_scale = 1 / std::sqrt(static_cast<double>(s.heads.head_dim));
  if (s.width < 4 || s.width % 2 != 0)
    c.fail("d_model", "expected an even number of at least 4, for sinusoids");
  s.sinusoids = true;
  s.position_offset = 2;
  s.position_rows = s.max_length + s.position_offset;
  if (c.boolean_or("scale_embedding", true)) s.embedding_scale = std::sqrt(static_cast<double>(s.width));
  s.norm = {.rms = false, .bias = true, .eps = 1e-5};  // torch.nn.LayerNorm's
  s.qkv_bias = s.out_bias = s.mlp_bias = true;
  s.gated = false;
  s.activation = c.activation_or("activation_function", "gelu");
  s.embedding_dropout = s.attention_out_dropout = s.mlp_out_dropout = c.rate_or("dropout", 0.1);
  s.attention_dropout = c.rate_or("attention_dropout", 0.1);
  s.inner_dropout = c.rate_or("activation_dropout", 0);
  s.tied = c.boolean_or("tie_word_embeddings", true);
  s.std = s.residual_std = c.number_or("init_std", 0.02);
  c.expect("layerdrop", {"0", "0.0"});
  c.expect("add_cross_attention", {"false"});
  return s;
}

}  // namespace redco

// GPT-2 (Radford et al. 2019): pre-norm blocks, learned positions, fused q/k/v projections stored (in, out).
// As the decoder of an encoder-decoder model its blocks also attend to the encoder's output. The first GPT
// (Radford et al. 2018): norms after each part.
#include <cmath>

#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

namespace {

DecoderArchitecture read_gpt2_keys(ModelConfig& c, bool cross) {
  DecoderArchitecture s;
  s.family = "gpt2";
  s.names = {
      .prefix = "transformer.",
      .embedding = "wte",
      .positions = "wpe",
      .layers = "h",
      .final_norm = "ln_f",
      .attention_norm = "ln_1",
      .mlp_norm = "ln_2",
      .qkv = "attn.c_attn",
      .out = "attn.c_proj",
      .up = "mlp.c_fc",
      .down = "mlp.c_proj",
      .buffers = {".attn.bias", ".attn.masked_bias", ".crossattention.bias", ".crossattention.masked_bias"}};
  s.vocab_size = c.integer("vocab_size");
  s.max_length = s.position_rows = c.integer_or("n_positions", 1024);
  s.width = c.integer("n_embd");
  s.layers.resize(c.integer("n_layer", 0));
  for (DecoderLayer& l : s.layers) l.rope = -1;
  const i64 H = c.integer("n_head");
  s.inner = c.integer_or("n_inner", 4 * s.width);
  s.heads = {H, H, read_head_width(c, "n_head", H, "n_embd", s.width)};
  s.activation = c.activation_or("activation_function", "gelu_new");
  s.attention_out_dropout = s.mlp_out_dropout = c.rate_or("resid_pdrop", 0.1);
  s.embedding_dropout = c.rate_or("embd_pdrop", 0.1);
  s.attention_dropout = c.rate_or("attn_pdrop", 0.1);
  s.norm = {.rms = false, .bias = true, .eps = c.positive_or("layer_norm_epsilon", 1e-5)};
  const bool scales = c.boolean_or("scale_attn_weights", true);
  s.score_scale = scales ? 1 / std::sqrt(static_cast<double>(s.heads.head_dim)) : 1.0;
  if (c.boolean_or("scale_attn_by_inverse_layer_idx", false))
    for (size_t i = 0; i < s.layers.size(); ++i) s.layers[i].score_divisor = static_cast<double>(i + 1);
  s.tied = c.boolean_or("tie_word_embeddings", true);
  s.std = c.number_or("initializer_range", 0.02);
  // GPT-2 paper, section 2.3.
  s.residual_std = s.std / std::sqrt(2.0 * static_cast<double>(std::max<size_t>(1, s.layers.size())));
  s.qkv = QkvStorage::parts;
  s.transposed = s.qkv_bias = s.out_bias = s.mlp_bias = true;
  s.gated = false;
  s.cross = cross;
  c.expect("add_cross_attention", {cross ? "true" : "false"});
  // reorder_and_upcast_attn: scores in fp32, which redco always uses. summary_*: heads of other tasks. n_ctx,
  // n_special, predict_special_tokens, output_past: early versions wrote them into published configs.
  c.inert({"reorder_and_upcast_attn", "summary_activation", "summary_first_dropout", "summary_proj_to_labels",
           "summary_type", "summary_use_proj", "n_ctx", "predict_special_tokens", "output_past"});
  c.expect("n_special", {"0"});
  return s;
}

}  // namespace

DecoderArchitecture read_openai_gpt(ModelConfig& c) {
  DecoderArchitecture s;
  s.family = "openai-gpt";
  s.names = {.prefix = "transformer.",
             .embedding = "tokens_embed",
             .positions = "positions_embed",
             .layers = "h",
             .attention_norm = "ln_1",
             .mlp_norm = "ln_2",
             .qkv = "attn.c_attn",
             .out = "attn.c_proj",
             .up = "mlp.c_fc",
             .down = "mlp.c_proj",
             .buffers = {".attn.bias", "position_ids"}};
  s.vocab_size = c.integer("vocab_size");
  s.padding_row = -1;
  s.max_length = s.position_rows = c.integer_as_or({"n_positions", "max_position_embeddings"}, 512);
  s.width = c.integer_as({"n_embd", "hidden_size"});
  s.layers.resize(c.integer_as({"n_layer", "num_hidden_layers"}, 0));
  for (DecoderLayer& l : s.layers) l.rope = -1;
  const i64 H = c.integer_as({"n_head", "num_attention_heads"});
  s.inner = 4 * s.width;
  s.heads = {H, H, read_head_width(c, "n_head", H, "n_embd", s.width)};
  s.score_scale = 1 / std::sqrt(static_cast<double>(s.heads.head_dim));
  c.expect("afn", {"\"gelu\"", "\"relu\"", "\"silu\"", "\"swish\""});
  const std::string activation = c.text_or("afn", "gelu");
  s.activation = activation == "gelu" ? "gelu_new" : activation;
  s.attention_out_dropout = s.mlp_out_dropout = c.rate_or("resid_pdrop", 0.1);
  s.embedding_dropout = c.rate_or("embd_pdrop", 0.1);
  s.attention_dropout = c.rate_or("attn_pdrop", 0.1);
  s.block = Block::post_norm;
  s.final_norm = false;
  s.norm = {.rms = false, .bias = true, .eps = c.positive_or("layer_norm_epsilon", 1e-5)};
  s.tied = c.boolean_or("tie_word_embeddings", true);
  s.std = s.residual_std = c.number_or("initializer_range", 0.02);
  s.qkv = QkvStorage::parts;
  s.transposed = s.qkv_bias = s.out_bias = s.mlp_bias = true;
  s.gated = false;
  // Of heads for other tasks, and of early versions.
  c.inert({"summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type",
           "summary_use_proj", "n_ctx", "n_special", "predict_special_tokens"});
  return s;
}

DecoderArchitecture read_gpt2(ModelConfig& c) { return read_gpt2_keys(c, false); }
DecoderArchitecture read_gpt2_cross(ModelConfig& c) { return read_gpt2_keys(c, true); }

}  // namespace redco

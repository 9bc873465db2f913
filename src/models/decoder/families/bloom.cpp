// BLOOM (BigScience 2022): ALiBi in place of positions, a norm after the embedding, fused projections head by
// head.
#include <cmath>

#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_bloom(ModelConfig& c) {
  DecoderArchitecture s;
  s.family = "bloom";
  s.names = {.prefix = "transformer.",
             .embedding = "word_embeddings",
             .embedding_norm = "word_embeddings_layernorm",
             .layers = "h",
             .final_norm = "ln_f",
             .qkv = "self_attention.query_key_value",
             .out = "self_attention.dense",
             .up = "mlp.dense_h_to_4h",
             .down = "mlp.dense_4h_to_h",
             .buffers = {}};
  s.vocab_size = c.integer("vocab_size");
  s.max_length = c.integer_or("seq_length", 2048);  // of the training; transformers does not read it
  s.unlimited = true;
  s.width = c.integer_as({"hidden_size", "n_embed"});
  s.inner = 4 * s.width;
  s.layers.resize(c.integer_as({"n_layer", "num_hidden_layers"}, 0));
  for (DecoderLayer& l : s.layers) l.rope = -1;
  const i64 H = c.integer_as({"n_head", "num_attention_heads"});
  s.heads = {H, H, read_head_width(c, "n_head", H, "hidden_size", s.width)};
  s.score_scale = 1 / std::sqrt(static_cast<double>(s.heads.head_dim));
  s.alibi = 1;
  s.norm = {.rms = false, .bias = true, .eps = c.positive_or("layer_norm_epsilon", 1e-5)};
  s.stream_from_norm = c.boolean_or("apply_residual_connection_post_layernorm", false);
  s.qkv = QkvStorage::groups;
  s.qkv_bias = s.out_bias = s.mlp_bias = true;
  s.gated = false;
  s.activation = "gelu_new";
  s.attention_out_dropout = s.mlp_out_dropout = c.rate_or("hidden_dropout", 0);
  s.attention_dropout = c.rate_or("attention_dropout", 0);
  s.tied = c.boolean_or("tie_word_embeddings", true);
  s.std = s.residual_std = c.number_or("initializer_range", 0.02);
  // slow_but_exact: another order of sums for checkpoints trained with pretraining_tp ranks.
  c.inert({"slow_but_exact", "pretraining_tp"});
  // Megatron's settings in published configs, which transformers does not read.
  c.inert({"attention_softmax_in_fp32", "bias_dropout_fusion", "masked_softmax_fusion", "offset_alibi",
           "skip_bias_add", "skip_bias_add_qkv", "unk_token_id"});
  return s;
}

}  // namespace redco

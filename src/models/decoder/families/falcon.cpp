// Falcon (Almazrouei et al. 2023): parallel blocks, one key/value head for all queries (7B) or for a group of
// them (40B, "new decoder architecture"), or sequential blocks with ALiBi (RW models).
#include <fmt/format.h>

#include <cmath>

#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_falcon(ModelConfig& c) {
  DecoderArchitecture s;
  s.family = "falcon";
  s.names = {.prefix = "transformer.",
             .embedding = "word_embeddings",
             .layers = "h",
             .final_norm = "ln_f",
             .qkv = "self_attention.query_key_value",
             .out = "self_attention.dense",
             .up = "mlp.dense_h_to_4h",
             .down = "mlp.dense_4h_to_h",
             .buffers = {"rotary_emb.inv_freq"}};
  s.vocab_size = c.integer("vocab_size");
  s.max_length = c.integer_or("max_position_embeddings", 2048);
  s.width = c.integer_as({"hidden_size", "n_embed"});
  s.layers.resize(c.integer_as({"num_hidden_layers", "n_layer"}, 0));
  const i64 H = c.integer_as({"num_attention_heads", "n_head"});
  s.inner = c.integer_or("ffn_hidden_size", 4 * s.width);
  const i64 D = read_head_width(c, "num_attention_heads", H, "hidden_size", s.width);
  const bool grouped = c.boolean_or("new_decoder_architecture", false);
  const bool one_kv = c.boolean_or("multi_query", true);
  const i64 kv_heads = c.integer_as_or({"num_kv_heads", "n_head_kv"}, H);
  const i64 K = grouped ? kv_heads : one_kv ? 1 : H;
  if (H % K != 0) c.fail("num_kv_heads", fmt::format("expected a divisor of num_attention_heads={}", H));
  s.heads = {H, K, D};
  s.score_scale = 1 / std::sqrt(static_cast<double>(D));
  s.qkv = QkvStorage::groups;
  s.norm = {.rms = false, .bias = true, .eps = c.positive_or("layer_norm_epsilon", 1e-5)};
  const bool parallel = c.boolean_or("parallel_attn", true);
  const i64 norms = c.integer_or("num_ln_in_parallel_attn", grouped ? 2 : 1);
  if (grouped && !parallel) c.fail("parallel_attn", "new_decoder_architecture needs true");
  if (norms > 2 || (norms == 2 && !grouped && parallel))
    c.fail("num_ln_in_parallel_attn", "supported: 1, or 2 with new_decoder_architecture");
  s.block = parallel ? Block::parallel : Block::pre_norm;
  if (parallel) {
    s.names.attention_norm = norms == 2 ? "ln_attn" : "input_layernorm";
    s.names.mlp_norm = norms == 2 ? "ln_mlp" : "";
  }
  s.qkv_bias = s.out_bias = s.mlp_bias = c.boolean_or("bias", false);
  s.gated = false;
  s.activation = c.activation_or("activation", "gelu");
  if (c.boolean_or("alibi", false)) {
    s.alibi = s.score_scale;  // the bias is scaled with the scores
    s.unlimited = true;
    for (DecoderLayer& l : s.layers) l.rope = -1;
    c.inert({"rope_parameters", "rope_theta", "rope_scaling"});
  } else {
    s.ropes = {read_rope(c, D, s.max_length)};
  }
  s.mlp_out_dropout = c.rate_or("hidden_dropout", 0);
  s.dropout_of_sum = true;
  c.expect("attention_dropout", {"0.0"});
  s.tied = c.boolean_or("tie_word_embeddings", true);
  s.std = s.residual_std = c.number_or("initializer_range", 0.02);
  return s;
}

}  // namespace redco

// OPT (Zhang et al. 2022): learned positions counted from the attention mask, norms before each part (350m:
// after it), embeddings that may be narrower than the model.
#include <cmath>

#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_opt(ModelConfig& c) {
  DecoderArchitecture s;
  s.family = "opt";
  // OPTForCausalLM saves model.decoder.*, OPTModel (and the first releases) decoder.*, the decoder alone no
  // prefix.
  s.names = {.prefix = "model.decoder.",
             .positions = "embed_positions",
             .project_in = "project_in",
             .final_norm = "final_layer_norm",
             .project_out = "project_out",
             .attention_norm = "self_attn_layer_norm",
             .mlp_norm = "final_layer_norm",
             .out = "self_attn.out_proj",
             .up = "fc1",
             .down = "fc2",
             .buffers = {"version"}};
  s.vocab_size = c.integer("vocab_size");
  s.padding_row = c.mentions("pad_token_id") ? c.padding_row(s.vocab_size) : 1;
  s.max_length = c.integer_or("max_position_embeddings", 2048);
  // Padding has row 1 of the table, the n-th token (from 1) row n + 1.
  s.position_offset = 2;
  s.masked_positions = true;
  s.position_rows = s.max_length + s.position_offset;
  s.width = c.integer("hidden_size");
  s.layers.resize(c.integer("num_hidden_layers", 0));
  for (DecoderLayer& l : s.layers) l.rope = -1;
  const i64 H = c.integer("num_attention_heads");
  s.inner = c.integer("ffn_dim");
  s.embedding_width = c.integer_or("word_embed_proj_dim", s.width);
  s.heads = {H, H, read_head_width(c, "num_attention_heads", H, "hidden_size", s.width)};
  s.score_scale = 1 / std::sqrt(static_cast<double>(s.heads.head_dim));
  const bool before = c.boolean_or("do_layer_norm_before", true);
  s.block = before ? Block::pre_norm : Block::post_norm;
  // Checkpoints fine-tuned with transformers before 4.20.1 lack the norm after the last layer.
  const bool removed = c.boolean_or("_remove_final_layer_norm", false);
  s.final_norm = before && !removed;
  s.qkv_bias = s.out_bias = s.mlp_bias = c.boolean_or("enable_bias", true);
  const bool affine = c.boolean_or("layer_norm_elementwise_affine", true);
  // torch.nn.LayerNorm's default epsilon; no key sets it.
  s.norm = {.rms = false, .weight = affine, .bias = affine, .eps = 1e-5};
  s.gated = false;
  s.activation = c.activation_or("activation_function", "relu");
  s.attention_out_dropout = s.mlp_out_dropout = c.rate_or("dropout", 0.1);
  s.attention_dropout = c.rate_or("attention_dropout", 0);
  s.tied = c.boolean_or("tie_word_embeddings", true);
  s.std = s.residual_std = c.number_or("init_std", 0.02);
  c.expect("layerdrop", {"0.0"});
  c.inert({"activation_dropout"});  // in early configs; no version of transformers applies it
  return s;
}

}  // namespace redco

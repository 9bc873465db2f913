// GPT-NeoX (Black et al. 2022) and Pythia: parallel blocks with a norm for each branch, fused projections
// head by head, rotary positions on a quarter of each head.
#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_gpt_neox(ModelConfig& c) {
  DecoderArchitecture s = read_usual(
      c,
      {.max_length = 2048, .grouped = false, .eps_key = "layer_norm_eps", .eps = 1e-5, .activation = "gelu"});
  s.names = {.prefix = "gpt_neox.",
             .embedding = "embed_in",
             .final_norm = "final_layer_norm",
             .head = "embed_out",
             .qkv = "attention.query_key_value",
             .out = "attention.dense",
             .up = "mlp.dense_h_to_4h",
             .down = "mlp.dense_4h_to_h",
             // Causal masks and rotary frequencies.
             .buffers = {".attention.bias", ".attention.masked_bias", ".attention.rotary_emb.inv_freq"}};
  s.padding_row = -1;
  s.norm = {.rms = false, .bias = true, .eps = s.norm.eps};
  s.block = c.boolean_or("use_parallel_residual", true) ? Block::parallel : Block::pre_norm;
  s.qkv = QkvStorage::groups;
  s.qkv_bias = s.out_bias = c.boolean_or("attention_bias", true);
  s.gated = false;
  s.mlp_bias = true;
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length,
                       {.theta_key = "rotary_emb_base", .share_key = "rotary_pct", .share = 0.25})};
  s.embedding_dropout = s.attention_out_dropout = s.mlp_out_dropout = c.rate_or("hidden_dropout", 0);
  c.inert({"classifier_dropout"});  // of another head
  return s;
}

}  // namespace redco

// BioGPT (Luo et al. 2022): norms before each part, learned positions from row 2 on, scaled embeddings.
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

}  // namespace redco

// Phi-3 (Abdin et al. 2024): LLaMA with fused projections, LongRoPE, and rotary positions on a part of each
// head (Phi-4-mini).
#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_phi3(ModelConfig& c) {
  DecoderArchitecture s = read_usual(c, {.max_length = 4096, .eps = 1e-5, .padding_row = 32000});
  s.names.qkv = "self_attn.qkv_proj";
  s.names.gate_up = "mlp.gate_up_proj";
  s.qkv = QkvStorage::parts;
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length,
                       {.share_key = "partial_rotary_factor", .renamed_longrope = true})};
  c.inert({"original_max_position_embeddings"});  // without LongRoPE
  s.attention_out_dropout = s.mlp_out_dropout = c.rate_or("resid_pdrop", 0);
  c.inert({"embd_pdrop"});  // no version of transformers applies it
  read_window_of_all(c, s, 0);
  c.expect("attention_bias", {"false"});  // in published configs
  return s;
}

}  // namespace redco

// nanochat (Karpathy 2025): norms without weights, also after the embedding and of each head after rotary
// positions, which rotate the other way; an MLP without gate, and capped logits.
#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_nanochat(ModelConfig& c) {
  DecoderArchitecture s = read_usual(c, {.max_length = 2048, .padding_row = 1, .activation = "relu2"});
  s.names.embedding_norm = "norm";
  s.names.up = "mlp.fc1";
  s.names.down = "mlp.fc2";
  s.norm.weight = false;
  s.head_norms = {.over = HeadNormSettings::Over::head, .norm = s.norm, .after_rope = true};
  s.qkv_bias = s.out_bias = c.boolean_or("attention_bias", false);
  s.gated = false;
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length, {.reversed = true})};
  s.logit_cap = read_cap(c, "final_logit_softcapping", 15);
  return s;
}

}  // namespace redco

// Apertus (Swiss AI Initiative 2025): LLaMA with norms of the heads and an MLP without gate, whose activation
// xIELU has parameters.
#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_apertus(ModelConfig& c) {
  DecoderArchitecture s =
      read_usual(c, {.max_length = 65536, .eps = 1e-5, .padding_row = 3, .activation = nullptr});
  c.expect("hidden_act", {"\"xielu\""});
  s.xielu = true;
  s.gated = false;
  s.names.attention_norm = "attention_layernorm";
  s.names.mlp_norm = "feedforward_layernorm";
  s.qkv_bias = s.out_bias = c.boolean_or("attention_bias", false);
  s.head_norms = {HeadNormSettings::Over::head, s.norm};
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length,
                       {.theta = 12e6, .absent = R"({"rope_type": "llama3", "factor": 8,
        "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 8192})"})};
  return s;
}

}  // namespace redco

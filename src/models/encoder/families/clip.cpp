// The text towers of CLIP (Radford et al. 2021), which is causal, and of SigLIP (Zhai et al. 2023), which is
// not.
#include <fmt/format.h>

#include "models/encoder/encoder.h"
#include "models/encoder/families.h"

namespace redco {

EncoderArchitecture read_clip_text(ModelConfig& c) {
  const bool siglip = c.text_or("model_type", "") == "siglip_text_model";
  EncoderArchitecture s;
  s.family = c.text_or("model_type", "clip_text_model");
  s.task = ModelTask::feature_extraction;
  s.names = {.prefix = "text_model.",
             .words = "embeddings.token_embedding",
             .positions = "embeddings.position_embedding",
             .embedding_norm = "",
             .final_norm = "final_layer_norm",
             .q = "self_attn.q_proj",
             .k = "self_attn.k_proj",
             .v = "self_attn.v_proj",
             .out = "self_attn.out_proj",
             .attention_norm = "layer_norm1",
             .up = "mlp.fc1",
             .down = "mlp.fc2",
             .mlp_norm = "layer_norm2"};
  s.vocab_size = c.integer_or("vocab_size", siglip ? 32000 : 49408);
  s.max_length = s.position_rows = c.integer_or("max_position_embeddings", siglip ? 64 : 77);
  s.width = c.integer_or("hidden_size", siglip ? 768 : 512);
  s.inner = c.integer_or("intermediate_size", siglip ? 3072 : 2048);
  const i64 n = c.integer_or("num_hidden_layers", 12, 0),
            H = c.integer_or("num_attention_heads", siglip ? 12 : 8);
  if (s.width % H != 0)
    c.fail("num_attention_heads", fmt::format("expected a divisor of hidden_size={}", s.width));
  s.heads = {H, H, s.width / H};
  s.causal = !siglip;
  s.pre_norm = s.states_before_norm = true;
  s.norm = {.rms = false, .bias = true, .eps = c.positive_or("layer_norm_eps", siglip ? 1e-6 : 1e-5)};
  s.activation = c.activation_or("hidden_act", siglip ? "gelu_pytorch_tanh" : "quick_gelu");
  s.attention_dropout = c.rate_or("attention_dropout", 0);
  s.std = c.number_or("initializer_range", 0.02);
  add_encoder_layers(s, "encoder.layers", n);
  return s;
}

}  // namespace redco

// GPT-J (Wang & Komatsuzaki 2021): attention and MLP in parallel after one norm, rotary positions in
// interleaved pairs on a part of each head, an output head with bias. CodeGen (Nijkamp et al. 2022): the same
// with fused queries, keys and values.
#include <fmt/format.h>

#include <cmath>

#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_gptj(ModelConfig& c) {
  const bool codegen = c.text_or("model_type", "gptj") == "codegen";
  DecoderArchitecture s;
  s.family = codegen ? "codegen" : "gptj";
  s.names = {.prefix = "transformer.",
             .embedding = "wte",
             .layers = "h",
             .final_norm = "ln_f",
             .attention_norm = "ln_1",
             .mlp_norm = "",
             .q = "attn.q_proj",
             .k = "attn.k_proj",
             .v = "attn.v_proj",
             .out = "attn.out_proj",
             .up = "mlp.fc_in",
             .down = "mlp.fc_out",
             // Causal masks and sines of the positions.
             .buffers = {".attn.bias", ".attn.masked_bias", ".attn.embed_positions", ".attn.causal_mask"}};
  if (codegen) {
    s.names.qkv = "attn.qkv_proj";
    s.qkv = QkvStorage::quarters;
  }
  s.vocab_size = c.integer("vocab_size");
  s.max_length = c.integer_or("n_positions", 2048);
  s.width = c.integer("n_embd");
  s.layers.resize(c.integer("n_layer", 0));
  const i64 H = c.integer("n_head");
  s.inner = c.integer_or("n_inner", 4 * s.width);
  const i64 D = read_head_width(c, "n_head", H, "n_embd", s.width);
  s.heads = {H, H, D};
  s.score_scale = 1 / std::sqrt(static_cast<double>(D));
  if (codegen && s.width % 4 != 0) c.fail("n_embd", "expected a multiple of 4");
  const bool none = c.mentions("rotary_dim") && !c.has("rotary_dim");
  if (none && !codegen)
    c.fail("rotary_dim", "expected a whole number; use the head width to rotate whole heads");
  const i64 rotary = c.integer_or("rotary_dim", none ? D : 64, 2);
  if (rotary % 2 != 0 || rotary > D)
    c.fail("rotary_dim", fmt::format("expected an even number of at most the head width {}", D));
  s.ropes.resize(1);
  s.ropes[0].usual.inv_freq = std::make_shared<const std::vector<float>>(rope_frequencies(10000, rotary));
  s.ropes[0].usual.interleaved = true;
  s.activation = c.activation_or("activation_function", "gelu_new");
  s.attention_out_dropout = s.mlp_out_dropout = c.rate_or("resid_pdrop", 0);
  s.embedding_dropout = c.rate_or("embd_pdrop", 0);
  s.attention_dropout = c.rate_or("attn_pdrop", 0);
  s.norm = {.rms = false, .bias = true, .eps = c.positive_or("layer_norm_epsilon", 1e-5)};
  s.block = Block::parallel;
  s.gated = false;
  s.mlp_bias = s.head_bias = true;
  s.tied = c.boolean_or("tie_word_embeddings", false);
  s.std = s.residual_std = c.number_or("initializer_range", 0.02);
  // Early versions wrote these keys into published configs: heads of other tasks, n_ctx (old name of
  // n_positions).
  c.inert({"summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type",
           "summary_use_proj", "n_ctx"});
  c.expect("rotary", {"true"});
  c.expect("scale_attn_weights", {"true"});
  return s;
}

}  // namespace redco

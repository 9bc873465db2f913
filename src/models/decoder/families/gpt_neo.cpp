// GPT-Neo (Black et al. 2021): learned positions, scores without a divisor, windows in every second layer.
#include <nlohmann/json.hpp>

#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

namespace {

// attention_types: [[["global", "local"], 6]] are six pairs of such layers.
void read_neo_windows(ModelConfig& c, DecoderArchitecture& s) {
  const i64 window = c.integer_or("window_size", 256);
  const nlohmann::json groups = nlohmann::json::parse(c.json("attention_types"));
  c.inert({"attention_layers"});  // attention_types, layer by layer
  const auto wrong = [&] {
    c.fail("attention_types", "expected lists such as [[[\"global\", \"local\"], 6]]");
  };
  std::vector<bool> local;
  if (groups.is_null())
    for (int i = 0; i < 24; ++i) local.push_back(i % 2 == 1);
  else if (!groups.is_array())
    wrong();
  else
    for (const nlohmann::json& group : groups) {
      if (!group.is_array() || group.size() != 2 || !group[0].is_array() || !group[1].is_number_unsigned() ||
          group[1] > s.layers.size())
        wrong();
      for (i64 n = group[1].get<i64>(); n > 0; --n)
        for (const nlohmann::json& kind : group[0]) {
          if (kind != "global" && kind != "local") c.fail("attention_types", "supported: global, local");
          local.push_back(kind == "local");
        }
    }
  if (local.size() != s.layers.size()) c.fail("attention_types", "expected the kinds of num_layers layers");
  for (size_t i = 0; i < local.size(); ++i) s.layers[i] = {.window = local[i] ? window : 0, .rope = -1};
}

}  // namespace

DecoderArchitecture read_gpt_neo(ModelConfig& c) {
  DecoderArchitecture s;
  s.family = "gpt_neo";
  s.names = {.prefix = "transformer.",
             .embedding = "wte",
             .positions = "wpe",
             .layers = "h",
             .final_norm = "ln_f",
             .attention_norm = "ln_1",
             .mlp_norm = "ln_2",
             .q = "attn.attention.q_proj",
             .k = "attn.attention.k_proj",
             .v = "attn.attention.v_proj",
             .out = "attn.attention.out_proj",
             .up = "mlp.c_fc",
             .down = "mlp.c_proj",
             .buffers = {".attn.attention.bias", ".attn.attention.masked_bias"}};  // causal masks
  s.vocab_size = c.integer("vocab_size");
  s.max_length = s.position_rows = c.integer_or("max_position_embeddings", 2048);
  s.width = c.integer("hidden_size");
  s.layers.resize(c.integer_as({"num_layers", "num_hidden_layers"}, 0));
  const i64 H = c.integer_as({"num_heads", "num_attention_heads"});
  s.inner = c.integer_or("intermediate_size", 4 * s.width);
  s.heads = {H, H, read_head_width(c, "num_heads", H, "hidden_size", s.width)};
  read_neo_windows(c, s);
  s.out_bias = s.mlp_bias = true;
  s.gated = false;
  s.activation = c.activation_or("activation_function", "gelu_new");
  s.attention_out_dropout = s.mlp_out_dropout = c.rate_or("resid_dropout", 0);
  s.embedding_dropout = c.rate_or("embed_dropout", 0);
  s.attention_dropout = c.rate_or("attention_dropout", 0);
  s.norm = {.rms = false, .bias = true, .eps = c.positive_or("layer_norm_epsilon", 1e-5)};
  s.tied = c.boolean_or("tie_word_embeddings", true);
  s.std = s.residual_std = c.number_or("initializer_range", 0.02);
  // Heads of other tasks.
  c.inert({"summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type",
           "summary_use_proj", "classifier_dropout"});
  return s;
}

}  // namespace redco

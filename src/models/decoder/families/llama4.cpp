// LLaMA 4 (Meta 2025), its text model: attention in chunks with rotary positions and norms of the heads, or
// to all tokens without positions and with queries that grow; mixtures of which a token takes one expert,
// whose input the score scales.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "models/decoder/decoder.h"
#include "models/decoder/families.h"
#include "models/decoder/read.h"
#include "models/families.h"

namespace redco {

namespace {

// layer_types; else the layers with rotary positions attend in chunks.
void read_chunks(ModelConfig& c, DecoderArchitecture& s) {
  const bool none = c.mentions("attention_chunk_size") && !c.has("attention_chunk_size");
  const i64 chunk = none ? 0 : c.integer_or("attention_chunk_size", 8192);
  bool given;
  const std::vector<bool> listed =
      read_sliding_layers(c, static_cast<i64>(s.layers.size()), &given, "chunked_attention");
  for (size_t i = 0; i < s.layers.size(); ++i) {
    if (given && listed[i] && none) c.fail("attention_chunk_size", "layers with chunks need it");
    if (given ? listed[i] : s.layers[i].rope >= 0) s.layers[i].chunk = chunk;
  }
}

// moe_layers, or every interleave_moe_layer_step-th layer.
void read_llama4_mixture_layers(ModelConfig& c, DecoderArchitecture& s) {
  const i64 step = c.integer_or("interleave_moe_layer_step", 1);
  const auto list = nlohmann::json::parse(c.json("moe_layers"));
  if (!list.is_null() && !list.is_array()) c.fail("moe_layers", "expected a list of layers");
  for (size_t i = 0; i < s.layers.size(); ++i)
    s.layers[i].mixture = list.is_null() ? (i + 1) % static_cast<size_t>(step) == 0
                                         : std::ranges::any_of(list, [i](const auto& l) { return l == i; });
}

MixtureSettings read_llama4_mixture(ModelConfig& c, const DecoderArchitecture& s, i64 inner) {
  MixtureSettings m;
  m.activation = read_expert_activation(c, s.activation);
  m.count = c.integer_or("num_local_experts", 16);
  read_router(c, m, "num_local_experts", 1, std::nullopt);
  if (m.per_token != 1) c.fail("num_experts_per_tok", "not supported; supported: 1");
  m.inner = m.shared_inner = inner;
  m.sigmoid = m.scales_input = true;
  m.router = "feed_forward.router";
  m.shared = "feed_forward.shared_expert";
  m.experts = m.computed_experts = "feed_forward.experts";
  m.stack_in = "feed_forward.experts.gate_up_proj";
  m.stack_out = "feed_forward.experts.down_proj";
  m.stack_transposed = true;
  return m;
}

DecoderArchitecture read_llama4_with(ModelConfig& c, DecoderDefaults d) {
  d.max_length = 131072;
  d.kv_heads = 8;
  d.head_dim = 128;
  d.eps = 1e-5;
  DecoderArchitecture s = read_usual(c, d);
  const i64 inner = s.inner;
  s.inner = c.integer_or("intermediate_size_mlp", 16384);
  s.names.gate = "feed_forward.gate_proj";
  s.names.up = "feed_forward.up_proj";
  s.names.down = "feed_forward.down_proj";
  s.qkv_bias = s.out_bias = c.boolean_or("attention_bias", false);
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length, {.theta = 500000, .interleaved = true})};
  const bool normed = c.boolean_or("use_qk_norm", true);
  NormSettings of_heads = s.norm;
  of_heads.weight = false;
  s.head_norms = {.over = HeadNormSettings::Over::head, .norm = of_heads, .after_rope = true};
  const std::vector<bool> rotated = read_rotated_layers(c, static_cast<i64>(s.layers.size()), true);
  for (size_t i = 0; i < rotated.size(); ++i) {
    s.layers[i].rope = rotated[i] ? 0 : -1;
    s.layers[i].head_norms = rotated[i] && normed;
    s.layers[i].grows = !rotated[i];
  }
  const double growth = c.number_or("attn_scale", 0.1);
  if (c.boolean_or("attn_temperature_tuning", true)) s.query_growth = growth;
  s.query_growth_length = c.integer_or("floor_scale", 8192);
  s.query_growth_first = 1;
  read_chunks(c, s);
  read_llama4_mixture_layers(c, s);
  s.mixture = read_llama4_mixture(c, s, inner);
  return s;
}

DecoderArchitecture read_llama4_part(ModelConfig& c) {
  DecoderArchitecture s =
      read_llama4_with(c, {.vocab_size = 202048, .width = 5120, .inner = 8192, .layers = 48, .heads = 40});
  s.names.part = "language_model.";
  s.names.other_parts = {"vision_model.", "multi_modal_projector."};
  return s;
}

}  // namespace

DecoderArchitecture read_llama4(ModelConfig& c) { return read_llama4_with(c, {}); }

std::unique_ptr<Model> make_llama4(ModelConfig& c) {
  ModelConfig text = text_part(c, "llama4_text", {"image_token_index", "boi_token_index", "eoi_token_index"});
  return make_decoder_model(text, read_llama4_part, "Llama4ForCausalLM");
}

}  // namespace redco

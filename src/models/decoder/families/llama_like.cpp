// Families that are LLaMA with other defaults, names or windows: InternLM3 (2025), IQuest-Coder (2025),
// EXAONE 3 (LG AI Research 2024), CWM (Meta 2025: windows in three of four layers), Ministral (Mistral AI
// 2024: windows as listed) and Ministral 3 (2025: queries that grow with their position).
#include <nlohmann/json.hpp>

#include "models/decoder/decoder.h"
#include "models/decoder/families.h"
#include "models/decoder/read.h"
#include "models/families.h"

namespace redco {

namespace {

void slide(DecoderArchitecture& s, const std::vector<bool>& slides, i64 window) {
  for (size_t i = 0; i < slides.size(); ++i)
    if (slides[i]) s.layers[i].window = window;
}

constexpr DecoderDefaults kMistralPart = {.vocab_size = 131072,
                                          .width = 5120,
                                          .inner = 32768,
                                          .layers = 40,
                                          .heads = 32,
                                          .max_length = 131072,
                                          .kv_heads = 8,
                                          .head_dim = 128,
                                          .eps = 1e-5};

DecoderArchitecture as_text_part(DecoderArchitecture s) {
  s.names.part = "language_model.";
  s.names.other_parts = {"vision_tower.", "multi_modal_projector."};
  return s;
}

DecoderArchitecture read_ministral3_with(ModelConfig& c, const DecoderDefaults& defaults) {
  DecoderArchitecture s = read_usual(c, defaults);
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length,
                       {.absent = R"({"type": "yarn", "rope_theta": 1e6, "factor": 16.0,
                            "original_max_position_embeddings": 16384, "mscale_all_dim": 1.0, "mscale": 1.0,
                            "llama_4_scaling_beta": 0.1})",
                        .growth = true})};
  s.query_growth = s.ropes[0].query_growth;
  s.query_growth_length = s.ropes[0].query_growth_length;
  read_window_of_all(c, s, 0);
  return s;
}

DecoderArchitecture read_mistral_part(ModelConfig& c) {
  DecoderArchitecture s = read_usual(c, kMistralPart);
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length, {.theta = 1e9})};
  read_window_of_all(c, s, 0);
  return as_text_part(s);
}

constexpr DecoderDefaults kMinistral3 = {.vocab_size = 131072,
                                         .width = 4096,
                                         .inner = 14336,
                                         .layers = 34,
                                         .heads = 32,
                                         .max_length = 262144,
                                         .kv_heads = 8,
                                         .head_dim = 128,
                                         .eps = 1e-5,
                                         .padding_row = 11};

DecoderArchitecture read_ministral3_part(ModelConfig& c) {
  return as_text_part(read_ministral3_with(c, kMinistral3));
}

}  // namespace

DecoderArchitecture read_cwm(ModelConfig& c) {
  DecoderArchitecture s = read_usual(c, {.max_length = 131072, .kv_heads = 8, .head_dim = 128, .eps = 1e-5});
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length,
                       {.theta = 1e6, .absent = R"({"rope_type": "llama3", "factor": 16.0,
                            "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                            "original_max_position_embeddings": 8192})"})};
  s.mlp_bias = c.boolean_or("mlp_bias", false);
  bool given;
  std::vector<bool> slides = read_sliding_layers(c, static_cast<i64>(s.layers.size()), &given);
  for (size_t i = 0; !given && i < slides.size(); ++i) slides[i] = i % 4 != 0;
  slide(s, slides, read_window(c, 8192));
  return s;
}

DecoderArchitecture read_exaone(ModelConfig& c) {
  DecoderArchitecture s = read_usual(c, {.max_length = 4096, .kv_heads = 8, .eps = 1e-5, .padding_row = 0});
  s.names.prefix = "transformer.";
  s.names.embedding = "wte";
  s.names.layers = "h";
  s.names.final_norm = "ln_f";
  s.names.attention_norm = "ln_1";
  s.names.mlp_norm = "ln_2";
  s.names.q = "attn.attention.q_proj";
  s.names.k = "attn.attention.k_proj";
  s.names.v = "attn.attention.v_proj";
  s.names.out = "attn.attention.out_proj";
  s.names.gate = "mlp.c_fc_0";
  s.names.up = "mlp.c_fc_1";
  s.names.down = "mlp.c_proj";
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length, {.theta = 500000})};
  s.qkv_bias = s.out_bias = c.boolean_or("attention_bias", false);
  s.mlp_bias = c.boolean_or("mlp_bias", false);
  return s;
}

DecoderArchitecture read_internlm3(ModelConfig& c) {
  const bool coder = c.text_or("model_type", "internlm3") == "iquestcoder";
  DecoderArchitecture s = read_usual(c, {.max_length = coder ? 131072 : 32768,
                                         .kv_heads = coder ? 8 : 2,
                                         .head_dim = 128,
                                         .eps = 1e-5,
                                         .padding_row = coder ? -1 : 2});
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length)};
  s.qkv_bias = s.out_bias = c.boolean_or("attention_bias", false);
  s.mlp_bias = c.boolean_or("mlp_bias", false);
  if (coder) {
    c.expect("clip_qkv", {"null"});
    c.expect("use_sliding_window", {"false"});
  }
  return s;
}

DecoderArchitecture read_ministral(ModelConfig& c) {
  DecoderArchitecture s = read_usual(c, {.max_length = 131072, .kv_heads = 8});
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length)};
  const i64 window = read_window(c, 4096);
  bool given;
  std::vector<bool> slides = read_sliding_layers(c, static_cast<i64>(s.layers.size()), &given);
  if (!given) slides.assign(slides.size(), window > 0);
  slide(s, slides, window);
  return s;
}

DecoderArchitecture read_ministral3(ModelConfig& c) {
  DecoderDefaults d = kMinistral3;
  d.vocab_size = d.width = d.inner = d.layers = d.heads = 0;
  return read_ministral3_with(c, d);
}

std::unique_ptr<Model> make_mistral3(ModelConfig& c) {
  const auto given = nlohmann::json::parse(c.json("text_config"));
  const bool third = given.is_object() && given.value("model_type", "mistral") == "ministral3";
  ModelConfig text = text_part(c, third ? "ministral3" : "mistral",
                               {"image_token_index", "projector_hidden_act", "vision_feature_layer",
                                "multimodal_projector_bias", "spatial_merge_size"});
  return third ? make_decoder_model(text, read_ministral3_part, "Ministral3ForCausalLM")
               : make_decoder_model(text, read_mistral_part, "MistralForCausalLM");
}

}  // namespace redco

// gpt-oss (OpenAI 2025): attention sinks, windows in every second layer, yarn positions, and a mixture of
// experts with biases and a clamped SwiGLU in each layer. Published experts are in MXFP4 (ckpt/mxfp4.h).
#include <nlohmann/json.hpp>

#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

namespace {

// quantization_config has the storage of the experts; redco decodes them on loading.
void read_quantization(ModelConfig& c) {
  const nlohmann::json q = nlohmann::json::parse(c.json("quantization_config"));
  if (!q.is_null() && (!q.is_object() || !q.contains("quant_method") || q["quant_method"] != "mxfp4"))
    c.fail("quantization_config", "not supported; supported for gpt_oss: quant_method mxfp4");
}

}  // namespace

DecoderArchitecture read_gpt_oss(ModelConfig& c) {
  DecoderArchitecture s = read_usual(
      c, {.max_length = 131072, .kv_heads = 8, .head_dim = 64, .eps = 1e-5, .activation = nullptr});
  c.inert({"hidden_act"});  // the experts have their own
  read_quantization(c);
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length, {.theta = 150000})};
  s.qkv_bias = s.out_bias = c.boolean_or("attention_bias", true);
  s.sinks = true;
  const i64 n = static_cast<i64>(s.layers.size()), window = read_window(c, 128);
  const std::vector<bool> slides = read_sliding_layers_or(c, n, 2);
  MixtureSettings m;
  m.count = c.integer_as_or({"num_local_experts", "num_experts"}, 128);
  read_router(c, m, "num_local_experts", 4);
  m.inner = s.inner;
  m.normalized = true;
  m.limit = c.positive_or("swiglu_limit", 7);
  m.alpha = c.number_or("swiglu_alpha", 1.702);
  m.router = "mlp.router";
  for (i64 i = 0; i < n; ++i) {
    s.layers[i].mixture = true;
    if (slides[i]) s.layers[i].window = window;
  }
  s.mixture = m;
  if (!c.has("rope_parameters") && !c.has("rope_scaling"))
    c.fail(
        "rope_parameters",
        "missing; the published models have rope_type yarn, factor 32, beta_fast 32, beta_slow 1, truncate "
        "false, original_max_position_embeddings 4096 and rope_theta 150000. Write them, or rope_type default");
  return s;
}

}  // namespace redco

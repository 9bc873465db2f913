// MPT (MosaicML 2023): ALiBi, layer norms without bias, no biases. transformers' model ignores the settings
// of MosaicML's code that choose other positions or norms, so they must have the values it uses.
#include <cmath>
#include <nlohmann/json.hpp>

#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

namespace {

void read_attn_config(ModelConfig& c, DecoderArchitecture& s) {
  const nlohmann::json a = nlohmann::json::parse(c.json("attn_config"));
  if (!a.is_null() && !a.is_object()) c.fail("attn_config", "expected an object");
  const auto value = [&](const char* key) {
    return a.is_object() && a.contains(key) ? a[key] : nlohmann::json();
  };
  const auto number = [&](const char* key, double fallback) {
    const nlohmann::json v = value(key);
    if (v.is_null()) return fallback;
    if (!v.is_number()) c.fail("attn_config", std::string(key) + ": expected a number");
    return v.get<double>();
  };
  const auto expect = [&](const char* key, const nlohmann::json& supported) {
    const nlohmann::json v = value(key);
    if (!v.is_null() && v != supported)
      c.fail("attn_config", std::string(key) + ": not supported; supported: " + supported.dump());
  };
  expect("attn_type", "multihead_attention");
  expect("prefix_lm", false);
  expect("qk_ln", false);
  expect("alibi", true);
  expect("attn_uses_sequence_id", false);
  s.clip_qkv = number("clip_qkv", 0);
  s.score_scale = number("softmax_scale", 1 / std::sqrt(static_cast<double>(s.heads.head_dim)));
  s.attention_dropout = s.attention_out_dropout = s.mlp_out_dropout = number("attn_pdrop", 0);
  if (s.clip_qkv < 0 || s.attention_dropout < 0 || s.attention_dropout >= 1)
    c.fail("attn_config", "expected clip_qkv >= 0 and attn_pdrop in [0, 1)");
}

}  // namespace

DecoderArchitecture read_mpt(ModelConfig& c) {
  DecoderArchitecture s;
  s.family = "mpt";
  s.names = {.prefix = "transformer.",
             .embedding = "wte",
             .layers = "blocks",
             .final_norm = "norm_f",
             .attention_norm = "norm_1",
             .mlp_norm = "norm_2",
             .qkv = "attn.Wqkv",
             .out = "attn.out_proj",
             .up = "ffn.up_proj",
             .down = "ffn.down_proj",
             .buffers = {}};
  s.vocab_size = c.integer("vocab_size");
  s.max_length = c.integer_or("max_seq_len", 2048);
  s.width = c.integer_as({"d_model", "hidden_size"});
  s.inner = 4 * s.width;
  s.layers.resize(c.integer_as({"n_layers", "num_hidden_layers"}, 0));
  for (DecoderLayer& l : s.layers) l.rope = -1;
  const i64 H = c.integer_as({"n_heads", "num_attention_heads"});
  s.heads = {H, H, read_head_width(c, "n_heads", H, "d_model", s.width)};
  s.alibi = 1;
  s.norm = {.rms = false, .eps = c.positive_or("layer_norm_epsilon", 1e-5)};
  s.qkv = QkvStorage::parts;
  s.gated = false;
  s.activation = "gelu";
  read_attn_config(c, s);
  c.expect("logit_scale", {"null"});
  c.expect("no_bias", {"true"});
  c.expect("norm_type", {"\"low_precision_layernorm\""});
  c.inert({"expansion_ratio", "learned_pos_emb", "emb_pdrop", "resid_pdrop", "embedding_fraction",
           "init_device", "verbose", "init_config", "tokenizer_name"});
  s.tied = c.boolean_or("tie_word_embeddings", true);
  s.std = s.residual_std = c.number_or("initializer_range", 0.02);
  return s;
}

}  // namespace redco

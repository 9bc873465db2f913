// GTE (Zhang et al. 2024, mGTE): BERT with rotary positions and gated MLPs. Jina Embeddings v3 (Sturua et al.
// 2024): XLM-RoBERTa with rotary positions. EuroBERT (Boizard et al. 2025): LLaMA's layers with attention to
// both sides.
#include <fmt/format.h>

#include "models/encoder/encoder.h"
#include "models/encoder/families.h"

namespace redco {

namespace {

void rename_layers(EncoderArchitecture& s, const char* name) {
  const auto n = static_cast<i64>(s.layers.size());
  s.layers.clear();
  add_encoder_layers(s, name, n);
}

}  // namespace

EncoderArchitecture read_gte(ModelConfig& c) {
  const bool none = c.has("type_vocab_size") && c.integer("type_vocab_size", 0) == 0;
  EncoderArchitecture s = read_bert_keys(c, 1, none ? 0 : 1);
  s.names.prefix = "gte.";
  s.names.qkv = "attention.qkv_proj";
  s.names.out = "attention.o_proj";
  s.names.attention_norm = "attn_ln";
  s.names.gate_up = "mlp.up_gate_proj";
  s.names.down = "mlp.down_proj";
  s.names.mlp_norm = "mlp_ln";
  read_encoder_task(c, "Gte", s);
  if (!c.has("max_position_embeddings")) s.max_length = 8192;
  rotate_all_layers(s, read_rope(c, s.heads.head_dim, s.max_length, {.theta = 160000}));
  s.gated = s.up_first = s.down_bias = true;
  s.mlp_bias = false;
  s.inner_dropout = s.dropout;
  s.attention_dropout = c.rate_or("attention_probs_dropout_prob", 0);
  s.masked = {.dense = "lm_head.dense",
              .norm = "lm_head.norm",
              .decoder = "lm_head.decoder",
              .bias = "lm_head.decoder.bias",
              .activation = "gelu"};
  s.classes = {.dense = s.names.prefix + "pooler.dense",
               .out = "classifier",
               .dropout = c.rate_or("classifier_dropout", s.dropout)};
  s.tags = {.out = "classifier", .dropout = s.classes->dropout};
  s.pooler = "pooler.dense";
  return s;
}

EncoderArchitecture read_jina_embeddings_v3(ModelConfig& c) {
  EncoderArchitecture s = read_bert_keys(c, 1, 1);
  s.names.prefix = "roberta.";
  s.names.embedding_norm = "emb_ln";
  s.names.qkv = "mixer.Wqkv";
  s.names.out = "mixer.out_proj";
  s.names.attention_norm = "norm1";
  s.names.up = "mlp.fc1";
  s.names.down = "mlp.fc2";
  s.names.mlp_norm = "norm2";
  read_encoder_task(c, "JinaEmbeddingsV3", s);
  if (!c.has("max_position_embeddings")) s.max_length = 8194;
  if (!c.has("layer_norm_eps")) s.norm.eps = 1e-5;
  rename_layers(s, "encoder.layers");
  rotate_all_layers(s, read_rope(c, s.heads.head_dim, s.max_length, {.theta = 20000}));
  s.masked = roberta_masked_head();
  s.classes = {.dense = "classifier.dense", .out = "classifier.out_proj"};
  s.classes->dropout = s.classes->input_dropout = c.rate_or("classifier_dropout", s.dropout);
  s.tags = {.out = "classifier", .dropout = s.classes->dropout};
  s.spans = {.out = "qa_outputs"};
  s.pooler = "pooler.dense";
  return s;
}

EncoderArchitecture read_eurobert(ModelConfig& c) {
  EncoderArchitecture s;
  s.family = "eurobert";
  s.names.prefix = "model.";
  s.names.words = "embed_tokens";
  s.names.embedding_norm = "";
  s.names.final_norm = "norm";
  s.names.q = "self_attn.q_proj";
  s.names.k = "self_attn.k_proj";
  s.names.v = "self_attn.v_proj";
  s.names.out = "self_attn.o_proj";
  s.names.attention_norm = "input_layernorm";
  s.names.gate = "mlp.gate_proj";
  s.names.up = "mlp.up_proj";
  s.names.down = "mlp.down_proj";
  s.names.mlp_norm = "post_attention_layernorm";
  read_encoder_task(c, "EuroBert", s);
  s.tied = c.boolean_or("tie_word_embeddings", false);
  s.vocab_size = c.integer("vocab_size");
  const i64 padding = s.vocab_size > 128001 ? 128001 : -1;
  s.padding_row = c.mentions("pad_token_id") ? c.padding_row(s.vocab_size) : padding;
  s.max_length = c.integer_or("max_position_embeddings", 8192);
  s.width = c.integer_or("hidden_size", 768);
  s.inner = c.integer_or("intermediate_size", 3072);
  add_encoder_layers(s, "layers", c.integer_or("num_hidden_layers", 12, 0));
  const i64 H = c.integer_or("num_attention_heads", 12), K = c.integer_or("num_key_value_heads", H);
  if (H % K != 0)
    c.fail("num_key_value_heads", fmt::format("expected a divisor of num_attention_heads={}", H));
  if (!c.has("head_dim") && s.width % H != 0)
    c.fail("num_attention_heads", fmt::format("expected a divisor of hidden_size={}", s.width));
  s.heads = {H, K, c.integer_or("head_dim", s.width / H)};
  s.pre_norm = s.gated = true;
  s.norm.eps = c.positive_or("rms_norm_eps", 1e-5);
  s.qkv_bias = s.out_bias = c.boolean_or("attention_bias", false);
  s.mlp_bias = s.down_bias = c.boolean_or("mlp_bias", false);
  s.activation = c.activation_or("hidden_act", "silu");
  s.attention_dropout = c.rate_or("attention_dropout", 0);
  s.std = c.number_or("initializer_range", 0.02);
  rotate_all_layers(s, read_rope(c, s.heads.head_dim, s.max_length, {.theta = 10000}));
  s.masked = {.decoder = "lm_head", .bias = s.mlp_bias ? "lm_head.bias" : "", .tied = s.tied};
  c.expect("classifier_pooling", {"\"bos\"", "\"mean\"", "\"late\""});
  const std::string pooling = c.text_or("classifier_pooling", "late");
  s.classes = {.dense = "dense",
               .out = "classifier",
               .activation = "gelu",
               .mean = pooling != "bos",
               .pools_last = pooling == "late"};
  s.tags = {.out = "classifier"};
  c.inert({"mask_token_id", "classifier_dropout"});
  return s;
}

}  // namespace redco

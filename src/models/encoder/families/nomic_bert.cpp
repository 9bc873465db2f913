// Nomic BERT (Nussbaum et al. 2024): BERT with rotary positions and gated MLPs without biases.
#include "models/encoder/encoder.h"
#include "models/encoder/families.h"

namespace redco {

EncoderArchitecture read_nomic_bert(ModelConfig& c) {
  EncoderArchitecture s = read_bert_keys(c, 0);
  s.names.prefix = "nomic_bert.";
  s.names.embedding_norm = "emb_ln";
  s.names.qkv = "attn.Wqkv";
  s.names.out = "attn.out_proj";
  s.names.attention_norm = "norm1";
  s.names.gate = "mlp.fc12";
  s.names.up = "mlp.fc11";
  s.names.down = "mlp.fc2";
  s.names.mlp_norm = "norm2";
  read_encoder_task(c, "NomicBert", s);
  s.max_length = c.integer_or("max_position_embeddings", 2048);
  s.position_rows = 0;
  s.heads.head_dim = c.integer_or("head_dim", s.heads.head_dim);
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length, {.theta = 1000})};
  const auto n = static_cast<i64>(s.layers.size());
  s.layers.clear();
  add_encoder_layers(s, "encoder.layers", n);
  for (EncoderLayer& l : s.layers) l.rope = 0;
  if (!c.has("hidden_act")) s.activation = "silu";
  s.gated = true;
  s.qkv_bias = s.out_bias = s.mlp_bias = false;
  s.dropout = s.embedding_dropout = c.rate_or("hidden_dropout_prob", 0);
  s.attention_dropout = c.rate_or("attention_probs_dropout_prob", 0);
  s.masked = {.dense = "cls.predictions.transform.dense",
              .norm = "cls.predictions.transform.layer_norm",
              .decoder = "cls.predictions.decoder",
              .bias = "cls.predictions.bias",
              .activation = s.activation};
  s.classes = {.dense = s.names.prefix + "pooler.dense",
               .out = "classifier",
               .dropout = c.rate_or("classifier_dropout", s.dropout)};
  s.tags = {.out = "classifier", .dropout = s.classes->dropout};
  s.spans = {.out = "qa_outputs"};
  s.pooler = "pooler.dense";
  return s;
}

}  // namespace redco

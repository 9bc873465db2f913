// DeBERTa-v2 and v3 (He et al. 2021): disentangled attention in place of positions.
#include <cmath>
#include <nlohmann/json.hpp>

#include "models/encoder/encoder.h"
#include "models/encoder/families.h"

namespace redco {

namespace {

// pos_att_type: ["c2p", "p2c"], or "c2p|p2c".
void read_terms(ModelConfig& c, DisentangledSettings& d) {
  const nlohmann::json types = nlohmann::json::parse(c.json("pos_att_type"));
  const std::string text = types.is_null() ? "" : types.dump();
  d.by_query = text.find("c2p") != std::string::npos;
  d.by_key = text.find("p2c") != std::string::npos;
  if (!d.by_query && !d.by_key) c.fail("pos_att_type", "supported: c2p, p2c, or both");
}

DisentangledSettings read_disentangled(ModelConfig& c, const EncoderArchitecture& s) {
  DisentangledSettings d;
  c.expect("relative_attention", {"true"});
  if (!c.has("relative_attention")) c.fail("relative_attention", "supported: true");
  read_terms(c, d);
  const i64 longest = c.integer_or("max_relative_positions", -1, -1);
  d.max_distance = longest < 1 ? s.max_length : longest;
  d.buckets = std::max<i64>(0, c.integer_or("position_buckets", -1, -1));
  d.span = d.buckets > 0 ? d.buckets : d.max_distance;
  if (d.buckets > 0 && (d.buckets < 4 || d.max_distance <= d.buckets / 2 + 1))
    c.fail("position_buckets", "expected at least 4, and fewer than twice the largest distance");
  if (!c.boolean_or("share_att_key", false)) {
    d.key = "attention.self.pos_key_proj";
    d.query = "attention.self.pos_query_proj";
  }
  d.dropout = s.dropout;
  return d;
}

}  // namespace

EncoderArchitecture read_deberta_v2(ModelConfig& c) {
  EncoderArchitecture s = read_bert_keys(c, 0, 0);
  s.names.prefix = "deberta.";
  s.names.q = "attention.self.query_proj";
  s.names.k = "attention.self.key_proj";
  s.names.v = "attention.self.value_proj";
  s.names.position_table = "encoder.rel_embeddings";
  read_encoder_task(c, "DebertaV2", s);
  if (!c.has("layer_norm_eps")) s.norm.eps = 1e-7;
  s.types = c.integer_or("type_vocab_size", 0, 0);
  if (!c.boolean_or("position_biased_input", true)) s.position_rows = 0;
  s.masks_embedding = true;
  s.disentangled = read_disentangled(c, s);
  c.expect("norm_rel_ebd", {"\"layer_norm\"", "\"none\""});
  if (c.text_or("norm_rel_ebd", "none") == "layer_norm") s.names.position_table_norm = "encoder.LayerNorm";
  c.expect("conv_kernel_size", {"0"});
  if (c.integer_or("embedding_size", s.width) != s.width) c.fail("embedding_size", "supported: hidden_size");
  if (c.integer_or("pooler_hidden_size", s.width) != s.width)
    c.fail("pooler_hidden_size", "supported: hidden_size");
  c.expect("legacy", {"true"});
  s.masked = {.dense = "cls.predictions.transform.dense",
              .norm = "cls.predictions.transform.LayerNorm",
              .decoder = "cls.predictions.decoder",
              .bias = "cls.predictions.bias",
              .activation = s.activation};
  s.classes = {.dense = "pooler.dense",
               .out = "classifier",
               .activation = c.activation_or("pooler_hidden_act", "gelu"),
               .input_dropout = c.rate_or("pooler_dropout", 0),
               .dropout = c.rate_or("cls_dropout", s.dropout)};
  s.tags = {.out = "classifier", .dropout = s.dropout};
  s.spans = {.out = "qa_outputs"};
  c.inert({"conv_act", "conv_groups", "max_relative_position"});  // of the convolution; in published configs
  return s;
}

}  // namespace redco

// DeBERTa-v2 and v3 (He et al. 2021): disentangled attention in place of positions.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "models/encoder/encoder.h"
#include "models/encoder/families.h"

namespace redco {

namespace {

// pos_att_type: ["c2p", "p2c"], "c2p|p2c", or null: none.
void read_terms(ModelConfig& c, DisentangledSettings& d) {
  const nlohmann::json types = nlohmann::json::parse(c.json("pos_att_type"));
  const std::string text = types.is_null() ? "" : types.dump();
  d.by_query = text.find("c2p") != std::string::npos;
  d.by_key = text.find("p2c") != std::string::npos;
  const bool none = types.is_null() || types.empty() || types == "";
  if (!none && !d.by_query && !d.by_key) c.fail("pos_att_type", "supported: c2p, p2c, both, or null");
}

// Without relative_attention, the terms of pos_att_type only divide the scores.
void read_positions(ModelConfig& c, EncoderArchitecture& s) {
  DisentangledSettings d;
  read_terms(c, d);
  s.score_terms = 1 + (d.by_query ? 1 : 0) + (d.by_key ? 1 : 0);
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
  const bool relative = c.boolean_or("relative_attention", false);
  if (relative) s.names.position_table = "encoder.rel_embeddings";
  d.by_query = d.by_query && relative;
  d.by_key = d.by_key && relative;
  s.disentangled = d;
}

// The first layer's convolution.
void read_convolution(ModelConfig& c, EncoderArchitecture& s) {
  const i64 size = c.integer_or("conv_kernel_size", 0, 0);
  const std::string activation = c.activation_or("conv_act", "tanh");
  const i64 groups = c.integer_or("conv_groups", 1);
  if (size == 0) return;
  if (size % 2 == 0) c.fail("conv_kernel_size", "expected an odd number, or 0");
  if (s.width % groups != 0)
    c.fail("conv_groups", fmt::format("expected a divisor of hidden_size={}", s.width));
  s.convolution = {size, groups, activation, s.dropout};
  s.names.convolution = "encoder.conv";
}

// Embeddings of another width are projected before their norm, without bias.
void read_embedding_width(ModelConfig& c, EncoderArchitecture& s) {
  s.embedding_width = c.integer_or("embedding_size", s.width);
  s.projects_before_norm = true;
  if (s.embedding_width != s.width) s.names.project = "embeddings.embed_proj";
}

}  // namespace

EncoderArchitecture read_deberta_v2(ModelConfig& c) {
  EncoderArchitecture s = read_bert_keys(c, 0, 0);
  s.names.prefix = "deberta.";
  s.names.q = "attention.self.query_proj";
  s.names.k = "attention.self.key_proj";
  s.names.v = "attention.self.value_proj";
  read_encoder_task(c, "DebertaV2", s);
  if (!c.has("layer_norm_eps")) s.norm.eps = 1e-7;
  s.types = c.integer_or("type_vocab_size", 0, 0);
  if (!c.boolean_or("position_biased_input", true)) s.position_rows = 0;
  s.masks_embedding = true;
  read_positions(c, s);
  c.expect("norm_rel_ebd", {"\"layer_norm\"", "\"none\""});
  if (c.text_or("norm_rel_ebd", "none") == "layer_norm") s.names.position_table_norm = "encoder.LayerNorm";
  read_convolution(c, s);
  read_embedding_width(c, s);
  if (c.integer_or("pooler_hidden_size", s.width) != s.width)
    c.fail("pooler_hidden_size", "supported: hidden_size");
  const bool legacy = c.boolean_or("legacy", true);
  if (!legacy && s.embedding_width != s.width) c.fail("legacy", "embedding_size needs true");
  const std::string head = legacy ? "cls.predictions." : "lm_predictions.lm_head.";
  const std::string within = legacy ? head + "transform." : head;
  s.masked = {.dense = within + "dense",
              .norm = within + "LayerNorm",
              .decoder = legacy ? head + "decoder" : "lm_predictions.lm_head",
              .bias = head + "bias",
              .activation = s.activation};
  s.classes = {.dense = "pooler.dense",
               .out = "classifier",
               .activation = c.activation_or("pooler_hidden_act", "gelu"),
               .input_dropout = c.rate_or("pooler_dropout", 0),
               .dropout = c.rate_or("cls_dropout", s.dropout)};
  s.tags = {.out = "classifier", .dropout = s.dropout};
  s.spans = {.out = "qa_outputs"};
  c.inert({"max_relative_position"});  // in published configs
  return s;
}

}  // namespace redco

// ALBERT (Lan et al. 2020): BERT with narrow embeddings, whose layers share parameters in groups.
#include <fmt/format.h>

#include "models/encoder/encoder.h"
#include "models/encoder/families.h"

namespace redco {

EncoderArchitecture read_albert(ModelConfig& c) {
  EncoderArchitecture s = read_bert_keys(c, 0);
  s.names.prefix = "albert.";
  s.names.project = "encoder.embedding_hidden_mapping_in";
  s.names.q = "attention.query";
  s.names.k = "attention.key";
  s.names.v = "attention.value";
  s.names.out = "attention.dense";
  s.names.attention_norm = "attention.LayerNorm";
  s.names.up = "ffn";
  s.names.down = "ffn_output";
  s.names.mlp_norm = "full_layer_layer_norm";
  read_encoder_task(c, "Albert", s);
  s.embedding_width = c.integer_or("embedding_size", 128);
  if (!c.has("hidden_act")) s.activation = "gelu_new";
  s.dropout = s.embedding_dropout = c.rate_or("hidden_dropout_prob", 0);
  s.drops_mlp_output = false;
  s.attention_dropout = c.rate_or("attention_probs_dropout_prob", 0);
  const auto n = static_cast<i64>(s.layers.size());
  const i64 groups = c.integer_or("num_hidden_groups", 1), each = c.integer_or("inner_group_num", 1);
  s.layers.clear();
  for (i64 i = 0; i < n; ++i)
    for (i64 j = 0; j < each; ++j)
      s.layers.push_back({.name = fmt::format("encoder.albert_layer_groups.{}.albert_layers.{}",
                                              i * groups / std::max<i64>(1, n), j)});
  s.masked = {.dense = "predictions.dense",
              .norm = "predictions.LayerNorm",
              .decoder = "predictions.decoder",
              .bias = "predictions.bias",
              .activation = s.activation};
  s.classes = {.dense = s.names.prefix + "pooler",
               .out = "classifier",
               .dropout = c.rate_or("classifier_dropout_prob", 0.1)};
  s.tags = {.out = "classifier", .dropout = s.classes->dropout};
  s.spans = {.out = "qa_outputs"};
  s.pooler = "pooler";
  // In the first published configs, which no version of transformers reads.
  c.inert({"down_scale_factor", "gap_size", "net_structure_type", "num_memory_blocks", "output_past"});
  return s;
}

}  // namespace redco

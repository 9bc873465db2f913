// BERT (Devlin et al. 2019), RoBERTa (Liu et al. 2019), XLM-RoBERTa, CamemBERT, data2vec (Baevski et al.
// 2022) and ERNIE (Sun et al. 2020): norms after each part and three embedding tables; in ERNIE also one of
// tasks. They differ in names, heads and position ids.
#include <fmt/format.h>

#include <utility>

#include "models/encoder/encoder.h"
#include "models/encoder/families.h"

namespace redco {

EncoderArchitecture read_bert_keys(ModelConfig& c, i64 padding_row, i64 types, bool learned_positions) {
  EncoderArchitecture s;
  s.family = c.text_or("model_type", "bert");
  s.vocab_size = c.integer("vocab_size");
  s.padding_row = c.mentions("pad_token_id") ? c.padding_row(s.vocab_size) : padding_row;
  s.max_length = s.position_rows = c.integer_or("max_position_embeddings", 512);
  s.types = types > 0 ? c.integer_or("type_vocab_size", types) : 0;
  s.width = c.integer_or("hidden_size", 768);
  const i64 n = c.integer_or("num_hidden_layers", 12, 0);
  const i64 H = c.integer_or("num_attention_heads", 12);
  s.inner = c.integer_or("intermediate_size", 3072);
  if (s.width % H != 0)
    c.fail("num_attention_heads", fmt::format("expected a divisor of hidden_size={}", s.width));
  s.heads = {H, H, s.width / H};
  s.activation = c.activation_or("hidden_act", "gelu");
  s.dropout = s.embedding_dropout = c.rate_or("hidden_dropout_prob", 0.1);
  s.attention_dropout = c.rate_or("attention_probs_dropout_prob", 0.1);
  s.norm = {.rms = false, .bias = true, .eps = c.positive_or("layer_norm_eps", 1e-12)};
  s.std = c.number_or("initializer_range", 0.02);
  c.expect("is_decoder", {"false"});
  if (learned_positions) c.expect("position_embedding_type", {"\"absolute\""});
  add_encoder_layers(s, "encoder.layer", n);
  return s;
}

void count_positions_after_padding(ModelConfig& c, EncoderArchitecture& s) {
  if (s.padding_row < 0) c.fail("pad_token_id", "expected a token's id; positions are counted from it");
  s.positions_after_padding = true;
  s.max_length = s.position_rows - s.padding_row - 1;
  if (s.max_length < 1)
    c.fail("max_position_embeddings",
           fmt::format("no position is left after pad_token_id={}", s.padding_row));
}

void rotate_all_layers(EncoderArchitecture& s, Rope rope) {
  s.position_rows = 0;
  s.ropes = {std::move(rope)};
  for (EncoderLayer& l : s.layers) l.rope = 0;
}

MaskedHead bert_masked_head(const std::string& activation) {
  return {.dense = "cls.predictions.transform.dense",
          .norm = "cls.predictions.transform.LayerNorm",
          .decoder = "cls.predictions.decoder",
          .bias = "cls.predictions.bias",
          .activation = activation};
}

MaskedHead roberta_masked_head() {
  return {.dense = "lm_head.dense",
          .norm = "lm_head.layer_norm",
          .decoder = "lm_head.decoder",
          .bias = "lm_head.bias",
          .activation = "gelu"};
}

namespace {

// The class names and the prefix of the parameters.
struct Variant {
  const char *classes, *prefix;
};
Variant variant_of(const std::string& family) {
  if (family == "roberta") return {"Roberta", "roberta."};
  if (family == "xlm-roberta") return {"XLMRoberta", "roberta."};
  if (family == "camembert") return {"Camembert", "roberta."};
  if (family == "data2vec-text") return {"Data2VecText", "data2vec_text."};
  if (family == "ernie") return {"Ernie", "ernie."};
  return {"Bert", "bert."};
}

}  // namespace

EncoderArchitecture read_bert(ModelConfig& c) {
  const Variant v = variant_of(c.text_or("model_type", "bert"));
  const std::string prefix = v.prefix;
  const bool roberta = prefix == "roberta." || prefix == "data2vec_text.";
  EncoderArchitecture s = read_bert_keys(c, roberta ? 1 : 0);
  if (prefix == "ernie.") {
    if (c.boolean_or("use_task_id", false)) s.names.task = "embeddings.task_type_embeddings";
    s.tasks = c.integer_or("task_type_vocab_size", 3);
  }
  s.names.prefix = v.prefix;
  read_encoder_task(c, v.classes, s);
  if (roberta) {
    count_positions_after_padding(c, s);
    s.masked = roberta_masked_head();
    s.classes = {.dense = "classifier.dense", .out = "classifier.out_proj"};
  } else {
    s.masked = bert_masked_head(s.activation);
    s.classes = {.dense = s.names.prefix + "pooler.dense", .out = "classifier"};
  }
  s.pooler = "pooler.dense";
  s.classes->dropout = c.rate_or("classifier_dropout", s.dropout);
  if (roberta) s.classes->input_dropout = s.classes->dropout;
  s.tags = {.out = "classifier", .dropout = s.classes->dropout};
  s.spans = {.out = "qa_outputs"};
  if (roberta)
    s.choices = {.dense = s.names.prefix + "pooler.dense", .out = "classifier", .dropout = s.dropout};
  // Early versions wrote these keys into published configs.
  c.inert({"directionality", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers",
           "pooler_size_per_head", "pooler_type", "output_past"});
  return s;
}

}  // namespace redco

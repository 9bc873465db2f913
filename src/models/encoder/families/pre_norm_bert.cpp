// BERT and RoBERTa with norms before each part: Megatron-BERT (Shoeybi et al. 2019), RoBERTa-PreLayerNorm
// (Ott et al. 2019) and XLM-RoBERTa XL (Goyal et al. 2021).
#include "models/encoder/encoder.h"
#include "models/encoder/families.h"

namespace redco {

EncoderArchitecture read_megatron_bert(ModelConfig& c) {
  EncoderArchitecture s = read_bert_keys(c, 0);
  s.names.embedding_norm = "";
  s.names.final_norm = "encoder.ln";
  s.names.attention_norm = "attention.ln";
  s.names.mlp_norm = "ln";
  read_encoder_task(c, "MegatronBert", s);
  s.pre_norm = true;
  s.masked = bert_masked_head(s.activation);
  s.classes = {.dense = "bert.pooler.dense", .out = "classifier", .dropout = s.dropout};
  s.tags = {.out = "classifier", .dropout = s.dropout};
  s.spans = {.out = "qa_outputs"};
  s.pooler = "pooler.dense";
  return s;
}

EncoderArchitecture read_pre_norm_roberta(ModelConfig& c) {
  const bool large = c.text_or("model_type", "") == "xlm-roberta-xl";
  EncoderArchitecture s = read_bert_keys(c, 1, large ? 1 : 2);
  s.names.prefix = large ? "roberta." : "roberta_prelayernorm.";
  s.names.attention_norm = large ? "attention.self_attn_layer_norm" : "attention.LayerNorm";
  s.names.mlp_norm = large ? "LayerNorm" : "intermediate.LayerNorm";
  s.names.final_norm = large ? "encoder.LayerNorm" : "LayerNorm";
  read_encoder_task(c, large ? "XLMRobertaXL" : "RobertaPreLayerNorm", s);
  if (large) {
    s.names.embedding_norm = "";
    s.drops_mlp_output = false;
    if (!c.has("max_position_embeddings")) s.position_rows = 514;
    if (!c.has("layer_norm_eps")) s.norm.eps = 1e-5;
  }
  s.pre_norm = true;
  count_positions_after_padding(c, s);
  s.masked = roberta_masked_head();
  s.classes = {.dense = "classifier.dense", .out = "classifier.out_proj"};
  s.classes->dropout = s.classes->input_dropout = c.rate_or("classifier_dropout", s.dropout);
  s.choices = {.dense = s.names.prefix + "pooler.dense", .out = "classifier", .dropout = s.dropout};
  s.tags = {.out = "classifier", .dropout = s.classes->dropout};
  s.spans = {.out = "qa_outputs"};
  s.pooler = "pooler.dense";
  return s;
}

}  // namespace redco

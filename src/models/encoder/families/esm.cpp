// ESM-1b and ESM-2 (Lin et al. 2022), of proteins: norms before each part, rotary or learned positions,
// embeddings scaled by the share of masked tokens.
#include "models/encoder/encoder.h"
#include "models/encoder/families.h"

namespace redco {

EncoderArchitecture read_esm(ModelConfig& c) {
  EncoderArchitecture s = read_bert_keys(c, -1, 0, false);
  s.names.prefix = "esm.";
  s.names.embedding_norm = c.boolean_or("emb_layer_norm_before", false) ? "embeddings.layer_norm" : "";
  s.names.final_norm = "encoder.emb_layer_norm_after";
  s.names.attention_norm = "attention.LayerNorm";
  s.names.mlp_norm = "LayerNorm";
  read_encoder_task(c, "Esm", s);
  s.pre_norm = s.masks_embedding = true;
  s.embedding_dropout = 0;  // transformers applies none
  s.activation = "gelu";
  if (c.boolean_or("token_dropout", false)) s.dropped_token = c.token_or("mask_token_id", -1, s.vocab_size);
  if (s.padding_row < 0) c.fail("pad_token_id", "expected a token's id; positions are counted from it");
  if (c.text_or("position_embedding_type", "absolute") == "rotary") {
    rotate_all_layers(s, read_rope(c, s.heads.head_dim, s.max_length));
  } else {
    c.expect("position_embedding_type", {"\"absolute\"", "\"rotary\""});
    s.positions_after_padding = true;
    s.max_length = s.position_rows - s.padding_row - 1;
  }
  s.masked = roberta_masked_head();
  s.classes = {.dense = "classifier.dense", .out = "classifier.out_proj", .dropout = s.dropout};
  s.classes->input_dropout = s.dropout;
  s.tags = {.out = "classifier", .dropout = s.dropout};
  s.pooler = "pooler.dense";
  c.expect("is_folding_model", {"false"});
  c.inert({"esmfold_config", "vocab_list", "hidden_act", "classifier_dropout"});
  return s;
}

}  // namespace redco

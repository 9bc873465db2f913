// MPNet (Song et al. 2020): RoBERTa without token types, with T5's relative positions, shared by all layers.
#include "models/encoder/encoder.h"
#include "models/encoder/families.h"

namespace redco {

EncoderArchitecture read_mpnet(ModelConfig& c) {
  EncoderArchitecture s = read_bert_keys(c, 1, 0);
  s.names.prefix = "mpnet.";
  s.names.q = "attention.attn.q";
  s.names.k = "attention.attn.k";
  s.names.v = "attention.attn.v";
  s.names.out = "attention.attn.o";
  s.names.attention_norm = "attention.LayerNorm";
  s.names.relative_bias = "encoder.relative_attention_bias";
  read_encoder_task(c, "MPNet", s);
  s.padding_row = 1;  // whatever the config says
  s.positions_after_padding = true;
  s.max_length = s.position_rows - 2;
  if (s.max_length < 1) c.fail("max_position_embeddings", "expected more than 2, the rows before position 0");
  // Buckets of 32 distances up to 128, of which the table may have more.
  const i64 rows = c.integer_or("relative_attention_num_buckets", 32, 32);
  if (rows != 32) c.fail("relative_attention_num_buckets", "supported: 32");
  s.buckets = {.count = 32, .max_distance = 128, .bidirectional = true};
  s.masked = roberta_masked_head();
  s.classes = {.dense = "classifier.dense",
               .out = "classifier.out_proj",
               .input_dropout = s.dropout,
               .dropout = s.dropout};
  s.choices = {.dense = s.names.prefix + "pooler.dense", .out = "classifier", .dropout = s.dropout};
  s.tags = {.out = "classifier", .dropout = s.dropout};
  s.spans = {.out = "qa_outputs"};
  s.pooler = "pooler.dense";
  return s;
}

}  // namespace redco

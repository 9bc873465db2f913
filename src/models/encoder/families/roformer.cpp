// RoFormer (Su et al. 2021): BERT with rotary positions, in interleaved pairs.
#include "models/encoder/encoder.h"
#include "models/encoder/families.h"

namespace redco {

EncoderArchitecture read_roformer(ModelConfig& c) {
  EncoderArchitecture s = read_bert_keys(c, 0);
  s.names.prefix = "roformer.";
  read_encoder_task(c, "RoFormer", s);
  if (!c.has("max_position_embeddings")) s.max_length = 1536;
  s.embedding_width = c.integer_or("embedding_size", s.width);
  if (s.embedding_width != s.width) s.names.project = "embeddings_project";
  rotate_all_layers(s, read_rope(c, s.heads.head_dim, s.max_length, {.interleaved = true}));
  c.expect("rotary_value", {"false"});
  s.masked = bert_masked_head(s.activation);
  s.classes = {.dense = "classifier.dense", .out = "classifier.out_proj", .activation = s.activation};
  s.classes->dropout = s.classes->input_dropout = s.dropout;
  s.tags = {.out = "classifier", .dropout = s.dropout};
  s.spans = {.out = "qa_outputs"};
  return s;
}

}  // namespace redco

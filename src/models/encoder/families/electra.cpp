// ELECTRA (Clark et al. 2020): BERT whose embeddings may be narrower than the model.
#include "models/encoder/encoder.h"
#include "models/encoder/families.h"

namespace redco {

EncoderArchitecture read_electra(ModelConfig& c) {
  EncoderArchitecture s = read_bert_keys(c, 0);
  s.names.prefix = "electra.";
  read_encoder_task(c, "Electra", s);
  s.embedding_width = c.integer_or("embedding_size", 128);
  if (s.embedding_width != s.width) s.names.project = "embeddings_project";
  s.masked = {.dense = "generator_predictions.dense",
              .norm = "generator_predictions.LayerNorm",
              .decoder = "generator_lm_head",
              .bias = "generator_lm_head.bias",
              .activation = "gelu"};
  s.classes = {.dense = "classifier.dense",
               .out = "classifier.out_proj",
               .activation = "gelu",
               .dropout = c.rate_or("classifier_dropout", s.dropout)};
  s.classes->input_dropout = s.classes->dropout;
  s.tags = {.out = "classifier", .dropout = s.classes->dropout};
  s.spans = {.out = "qa_outputs"};
  if (s.task == ModelTask::multiple_choice) c.fail("architectures", "multiple choice is not supported");
  // Of other heads.
  c.inert({"summary_type", "summary_use_proj", "summary_activation", "summary_last_dropout"});
  return s;
}

}  // namespace redco

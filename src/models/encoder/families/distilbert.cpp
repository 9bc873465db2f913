// DistilBERT (Sanh et al. 2019): BERT without token types and pooler.
#include <fmt/format.h>

#include "models/encoder/encoder.h"
#include "models/encoder/families.h"

namespace redco {

EncoderArchitecture read_distilbert(ModelConfig& c) {
  EncoderArchitecture s;
  s.family = "distilbert";
  s.names.prefix = "distilbert.";
  s.names.q = "attention.q_lin";
  s.names.k = "attention.k_lin";
  s.names.v = "attention.v_lin";
  s.names.out = "attention.out_lin";
  s.names.attention_norm = "sa_layer_norm";
  s.names.up = "ffn.lin1";
  s.names.down = "ffn.lin2";
  s.names.mlp_norm = "output_layer_norm";
  read_encoder_task(c, "DistilBert", s);
  s.vocab_size = c.integer("vocab_size");
  s.padding_row = c.mentions("pad_token_id") ? c.padding_row(s.vocab_size) : 0;
  s.max_length = s.position_rows = c.integer_or("max_position_embeddings", 512);
  s.width = c.integer_as_or({"dim", "hidden_size"}, 768);
  const i64 n = c.integer_as_or({"n_layers", "num_hidden_layers"}, 6, 0);
  const i64 H = c.integer_as_or({"n_heads", "num_attention_heads"}, 12);
  s.inner = c.integer_or("hidden_dim", 3072);
  if (s.width % H != 0) c.fail("n_heads", fmt::format("expected a divisor of dim={}", s.width));
  s.heads = {H, H, s.width / H};
  s.activation = c.activation_or("activation", "gelu");
  s.dropout = s.embedding_dropout = c.rate_or("dropout", 0.1);
  s.attention_dropout = c.rate_or("attention_dropout", 0.1);
  s.norm = {.rms = false, .bias = true, .eps = 1e-12};  // no key sets it
  s.std = c.number_or("initializer_range", 0.02);
  add_encoder_layers(s, "transformer.layer", n);
  s.masked = {.dense = "vocab_transform",
              .norm = "vocab_layer_norm",
              .decoder = "vocab_projector",
              .bias = "vocab_projector.bias",
              .activation = s.activation};
  s.classes = {.dense = "pre_classifier",
               .out = "classifier",
               .activation = "relu",
               .dropout = c.rate_or("seq_classif_dropout", 0.2)};
  s.tags = {.out = "classifier", .dropout = s.dropout};
  s.spans = {.out = "qa_outputs", .dropout = c.rate_or("qa_dropout", 0.1)};
  // The sines only initialize the table. The others: of early versions.
  c.inert({"sinusoidal_pos_embds", "output_past", "tie_weights_"});
  return s;
}

}  // namespace redco

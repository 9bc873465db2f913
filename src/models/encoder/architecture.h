// The switches of the one text encoder (encoder.h). A family is a function that reads a config into this
// table.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/encoder/convolution.h"
#include "models/encoder/disentangled.h"
#include "models/model.h"
#include "models/norms.h"
#include "models/relative_bias.h"
#include "models/rope_config.h"

namespace redco {

// Names of the parameters in files, without `.weight` and `.bias`. An empty name: the encoder has no such
// layer.
struct EncoderNames {
  std::string prefix = "bert.";  // of all parameters but the heads
  std::string words = "embeddings.word_embeddings", positions = "embeddings.position_embeddings",
              types = "embeddings.token_type_embeddings", embedding_norm = "embeddings.LayerNorm", project{},
              task{}, relative_bias{}, position_table{}, position_table_norm{}, convolution{}, final_norm{};
  // Within a layer.
  std::string q = "attention.self.query", k = "attention.self.key", v = "attention.self.value",
              out = "attention.output.dense", attention_norm = "attention.output.LayerNorm";
  std::string qkv{};  // one tensor: all queries, all keys, all values
  std::string up = "intermediate.dense", down = "output.dense", mlp_norm = "output.LayerNorm";
  std::string gate{};     // of a gated MLP
  std::string gate_up{};  // one tensor: the rows of gate, then those of up; with up_first the other way
};

// Logits of the vocabulary: norm(activation(dense(x))) times the embedding's table. Without the name `dense`,
// x times the table.
struct MaskedHead {
  std::string dense, norm, decoder;
  std::string bias;  // the parameter; `decoder`.bias is another name of it; empty: no bias
  std::string activation;
  bool dense_bias = true;
  bool tied = true;  // false: `decoder` has a separate table
};

// Scores of classes: out(dropout(activation(dense(pooled)))), pooled from the first token or from all.
struct ClassHead {
  std::string dense, out;
  std::string activation = "tanh";
  std::string norm{};  // after the activation
  bool dense_bias = true;
  double input_dropout = 0;  // before `dense`
  bool mean = false;         // the mean of all tokens, in place of the first one
  bool pools_last = false;   // pools after `dense` and its activation, not before
  double dropout = 0;
};

// Scores of each token: out(dropout(x)).
struct TokenHead {
  std::string out;
  double dropout = 0;
  bool dense = false;  // x is activation(dense(x)) with the norm, as in ClassHead
};

struct EncoderLayer {
  std::string name;  // of the layer whose parameters it has; layers may share them (ALBERT)
  i64 reach = -1;    // tokens to each side that a query attends to; -1: all
  int rope = -1;     // index in `ropes`; -1: no rotary positions
};

struct EncoderArchitecture {
  std::string family;
  EncoderNames names;
  ModelTask task = ModelTask::masked_lm;

  // Sizes.
  i64 vocab_size = 0, max_length = 0, width = 0, inner = 0;
  i64 embedding_width = 0;            // 0: width; another one is projected
  bool projects_before_norm = false;  // without bias, before the embedding's norm; false: after it
  i64 position_rows = 0;              // of the table of learned positions; 0: none
  i64 types = 0;                      // of tokens; 0: none
  i64 tasks = 0;                      // rows of EncoderNames::task; all tokens have the first one
  i64 labels = 0;
  std::string problem_type;
  bool tied = true;  // the masked head's table is that of the embedding
  HeadGeometry heads;
  double std = 0.02;

  // Embeddings.
  i64 padding_row = -1;
  bool positions_after_padding = false;  // positions count from padding_row + 1 and skip padding (RoBERTa)
  double embedding_dropout = 0;

  // Blocks.
  bool causal = false;
  bool pre_norm = false;
  bool first_norm = true;  // pre_norm: the first layer has a norm before its attention
  NormSettings norm;
  std::vector<EncoderLayer> layers;
  bool qkv_bias = true, out_bias = true, mlp_bias = true;
  bool down_bias = false;  // of the MLP's last layer; mlp_bias: of all its layers
  bool gated = false, up_first = false;
  std::string activation = "gelu";
  double dropout = 0, attention_dropout = 0, inner_dropout = 0;
  bool drops_mlp_output = true;
  std::vector<Rope> ropes;
  std::optional<DisentangledSettings> disentangled;
  i64 score_terms = 1;  // scores are divided by the square root of this times the width of a head
  std::optional<ConvolutionSettings> convolution;  // added to the result of the first layer
  // >= 0: this token's embedding is zero, and all embeddings of a text are divided by its share of other
  // tokens, times that of training (ESM).
  i32 dropped_token = -1;
  bool masks_embedding = false;            // the embeddings of padding are zero
  std::optional<RelativeBuckets> buckets;  // T5's bias of the scores, shared by all layers
  bool states_before_norm = false;         // ApplyOptions::hidden_states ends before the final norm

  // Heads; only that of the task is declared.
  std::optional<MaskedHead> masked;
  std::optional<ClassHead> classes;
  std::optional<ClassHead> choices;          // of multiple choice, if it is not that of classes
  std::optional<TokenHead> tags{}, spans{};  // token classification, question answering
  std::string pooler{};  // a linear layer of the files that a model without head does not use
};

}  // namespace redco

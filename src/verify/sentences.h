// Sentence encoders in verify: texts, and the positive of each. B texts, C features of an embedding.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/model.h"
#include "pipeline/pipeline.h"
#include "verify/expected.h"

namespace redco {

inline constexpr const char* kSentenceTask = "sentence-embedding";

struct Sentences {
  EncoderInputs positives;           // positive_input_ids, positive_attention_mask
  std::vector<std::string> pooling;  // modes, of the folder's modules; {"mean"} without them
  Batch weights;                     // of the tokens, for pool()
  bool found() const { return positives.input_ids.defined(); }
};

// The second texts of the file, and how the model's folder pools; nothing is found in the file of another
// task. ContentsErrors: padding that is not on the right, another number of texts.
Sentences read_sentences(const Model& model, const std::string& folder, const Expected& expected);

// 20 cos of every text and every positive, [B, B]: the logits of MultipleNegativesRankingLoss. hidden: of the
// texts. `values`: mean_pooled, embeddings and positive_embeddings, by their names in the file; may be null.
Tensor sentence_logits(const Model& model, const ParamTree& params, const Sentences& in, const Tensor& hidden,
                       std::map<std::string, Tensor>* values);

}  // namespace redco

// Rows of tokens for decoder-only models: a prompt and an answer, of which a loss counts the answer (DPO,
// distillation, policy gradients), and their log-probabilities.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/model.h"
#include "pipeline/pipeline.h"
#include "pipeline/records.h"

namespace redco {

struct TokenRow {
  std::vector<i32> ids;  // the prompt, then the answer
  i64 first = 1;         // the index of the answer's first token, at least 1: the first that the loss counts
};

// Adds the fields PREFIXinput_ids, PREFIXpositions and PREFIXlabels, [rows, length] with the length of the
// batch's shape. The label of a position is the next token, where that belongs to the answer; -100 elsewhere.
// Rows are padded on the right. Returns the number of labels of these rows. On a meta context: no rows.
double add_token_rows(Batch& batch, const Model& model, std::span<const TokenRow> mine,
                      const std::string& prefix = "");

// The model's inputs in those fields.
DecoderInputs decoder_inputs(const Batch& batch, const std::string& prefix = "");

// [rows, length]: the log-probability of each label, 0 where there is none. Differentiable.
Tensor token_log_probs(const Model& model, const ParamTree& params, const Batch& batch,
                       const ApplyOptions& options, const std::string& prefix = "");

// The ids of a prompt that an answer follows: without an end token that the tokenizer adds, and without a
// second token that begins a text; of an empty text the token that begins a
// text. ContentsError, with the record's place, if the prompt is empty and no token begins a text.
std::vector<i32> prompt_ids(const Tokenizer& tokenizer, const Record& record, const std::string& prompt);

// The model that the training began with, for losses that stay near it: with adapters (train.lora) the model
// without them, otherwise the frozen model `reference` of the job. UsageError if it has none.
struct FixedModel {
  const Model& model;
  ParamTree params;
};
FixedModel reference_model(const Pipeline& pipeline, const ParamTree& params);

// log(sigmoid(x)), exact for large |x|.
Tensor log_sigmoid(const Tensor& x);

}  // namespace redco

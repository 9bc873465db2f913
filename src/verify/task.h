// What a task asks of a model: its inputs as a fixture holds them, the forward pass, the loss.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/model.h"
#include "verify/expected.h"

namespace redco {

// Which positions hold tokens.
struct PositionMask {
  std::string name;         // in the file
  std::vector<i32> values;  // [B * tokens], 0: padding; empty: the file has no such mask
};

struct TaskInputs {
  EncoderInputs encoder;  // of two stacks, or of an encoder alone
  DecoderInputs decoder;  // without the memory
  Tensor targets;   // i32, [B, T] or, of rows' classes, [B]: what the logits are to say; negative: not asked
  Tensor values{};  // of regressions in place of targets: [B, labels]
  i64 n_targets = 0;
  PositionMask encoder_mask{}, decoder_mask{};  // of the two inputs' positions
};

// Reads the inputs of the model's task, cut over the current context. ContentsErrors name the file: ids
// outside the vocabulary, shapes that don't go together, decoder inputs that aren't the labels moved right.
// Of two stacks attention_mask is the encoder's, decoder_attention_mask (may be absent) the decoder's.
TaskInputs read_task_inputs(const Model& model, const Expected& expected);

// The mask of the positions of hidden states or logits, by their names in the file (hidden.<i>,
// encoder_hidden.<i>, decoder_hidden.<i>, logits); null: no mask, every position counts.
const PositionMask* mask_of(const Model& model, const TaskInputs& in, const std::string& tensor);

// Logits of every position, or of every row. `hidden` (may be null): hidden.<i>, or encoder_hidden.<i> and
// decoder_hidden.<i>.
Tensor task_logits(const Model& model, const ParamTree& params, const TaskInputs& in, ApplyOptions o = {},
                   std::map<std::string, Tensor>* hidden = nullptr);

// The mean over the targets, one element: cross-entropy, or the square of the error.
Tensor task_loss(const TaskInputs& in, const Tensor& logits);

}  // namespace redco

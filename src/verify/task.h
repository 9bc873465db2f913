// A model's task in verify: the inputs of a fixture, the forward pass, the loss.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/model.h"
#include "verify/expected.h"
#include "verify/sentences.h"

namespace redco {

// The positions that hold tokens.
struct PositionMask {
  std::string name;         // in the file
  std::vector<i32> values;  // [B * tokens], 0: padding; empty: the file has no such mask
};

struct TaskInputs {
  EncoderInputs encoder;  // of two stacks, or of an encoder-only model
  // Of a text-to-image model, whose `encoder` has the noisy image and its time. With `pairs`: the texts of
  // the images of `encoder`; a tower alone has only one of them.
  EncoderInputs caption{};
  bool pairs = false;
  DecoderInputs decoder;  // without the memory
  Tensor targets;         // i32, [B, T], or [B] for classes of rows; negative: ignored
  Tensor values{};        // in place of targets: [B, labels] of a regression, [B, C, H, W] of text to image
  i64 n_targets = 0;
  Sentences sentences{};                        // of a sentence encoder
  PositionMask encoder_mask{}, decoder_mask{};  // of the positions of the two inputs
};

// Reads the inputs of the model's task, sharded over the current context. ContentsErrors name the file: ids
// outside the vocabulary, shapes that do not match, decoder inputs that are not the shifted labels. With two
// stacks attention_mask is the encoder's and decoder_attention_mask (optional) the decoder's. folder: the
// model's; "": the file's.
TaskInputs read_task_inputs(const Model& model, const Expected& expected, const std::string& folder = "");

// The mask of the positions of hidden states or logits, by their names in the file (hidden.<i>,
// encoder_hidden.<i>, decoder_hidden.<i>, logits); null: no mask, every position counts.
const PositionMask* mask_of(const Model& model, const TaskInputs& in, const std::string& tensor);

// Logits of every position, or of every row; of a text-to-image model its image; of pairs their logits, or
// the embeddings of a tower alone. `hidden` (may be null): hidden.<i>; or encoder_hidden.<i> and
// decoder_hidden.<i>; or image_hidden.<i>, image_last, image_pooled, image_embeds, and text_...; of a
// sentence encoder its embeddings too.
Tensor task_logits(const Model& model, const ParamTree& params, const TaskInputs& in, ApplyOptions o = {},
                   std::map<std::string, Tensor>* hidden = nullptr);

// The mean over the targets, one element: cross-entropy, or squared error; of pairs the model's loss.
// router_logits: of the pass (ApplyOptions), for the model's router_loss(), which is added.
Tensor task_loss(const Model& model, const TaskInputs& in, const Tensor& logits,
                 const std::vector<Tensor>& router_logits);

}  // namespace redco

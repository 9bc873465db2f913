// Models with two towers in verify. B pairs of an image and a text.
#pragma once

#include <map>
#include <string>

#include "models/model.h"

namespace redco {

// Row i, column k: the logit of image i and text k, [B, B]. `values`, by their names in the file; may be
// null: image_hidden.<i>, image_last, image_pooled, image_embeds, and text_... for the texts.
Tensor tower_logits(const Model& model, const ParamTree& params, const EncoderInputs& images,
                    const EncoderInputs& texts, const ApplyOptions& o, std::map<std::string, Tensor>* values);

// The loss of the model's own pairs, one element: the mean of the cross-entropies in both directions, or with
// a bias of the logits SigLIP's.
Tensor tower_loss(const ParamTree& params, const Tensor& logits);

}  // namespace redco

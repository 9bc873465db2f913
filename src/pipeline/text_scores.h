// Scores of whole texts by a model with one output per text: a reward model in training
// (pipelines/reward.cpp), and a frozen one.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/model.h"
#include "pipeline/pipeline.h"

namespace redco {

// UsageError unless the model gives one number for a text. what: "pipeline: reward".
void require_text_scorer(const Model& model, const std::string& what);

// Adds PREFIXinput_ids and PREFIXkey_mask, [rows, length of the batch's shape], padded on the right.
void add_text_rows(Batch& batch, std::span<const std::vector<i32>> mine, const std::string& prefix = "");
// [rows]: the score of each text of those fields. Differentiable.
Tensor text_scores(const Model& model, const ParamTree& params, const Batch& batch,
                   const ApplyOptions& options, const std::string& prefix = "");
// [rows]: scores of texts on one replica.
Tensor text_scores(const Model& model, const ParamTree& params, std::span<const std::vector<i32>> texts);

}  // namespace redco

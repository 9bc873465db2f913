// The parameters of a job: how they are sharded and kept, loaded or initialized.
#pragma once

#include <vector>

#include "assembly/job_model.h"
#include "nn/param_tree.h"

namespace redco {

struct NamedParts;

// Of the job's model and of its named ones.
std::vector<CustomRule> custom_rules(const JobConfig& job);

// Parameters on the current context: loaded from the source's folder and adapter, or random from train.seed.
// `params`: those of Pipeline::all_params() or of a model. The pipeline's own (kExtra) are read from
// models/extra of the folder; missing ones get their initial values, with a line in the log. `named`:
// the models whose parameters are among them; null: none. Collective.
ParamTree make_job_params(const JobConfig& job, const ModelSource& source, const Model* model,
                          const ModelParams& params, const ParamStorage& storage = {},
                          const std::vector<NamedParts>* named = nullptr);
// How the job keeps parameters in memory: for training, or for use without training.
ParamStorage training_storage(const JobConfig& job);
ParamStorage inference_storage(const JobConfig& job);

}  // namespace redco

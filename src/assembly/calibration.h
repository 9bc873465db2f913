// data.calibration: which columns of a model's matrices matter most, measured with texts, for int4.
#pragma once

#include <functional>

#include "assembly/job_model.h"
#include "ckpt/importance.h"
#include "nn/param_tree.h"

namespace redco {

// Whether the job calibrates: data.calibration is set, and weights are quantized to int4 when they are
// loaded. Without int4, a warning names the files as unused.
bool calibrates(const JobConfig& job, const ParamTree& tree);

// The importance of each matrix in int4, from the inputs of its layer when the model reads the first
// data.calibration_tokens tokens of the files. It is kept in the user's cache, by weights, config and tokens;
// only where the cache lacks it, `load` is called, which gives `tree` its weights. UsageError: a model that
// is no decoder, no tokenizer. Collective.
ckpt::Importances importance(const JobConfig& job, const ModelSource& source, const Model& model,
                             const ParamTree& tree, const std::function<void()>& load);

// The same for a job whose model nothing else needs. `job` has data.calibration and int4. Collective.
ckpt::Importances importance_of(const JobConfig& job);

}  // namespace redco

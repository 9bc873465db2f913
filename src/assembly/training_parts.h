// The parts of a training run: for `train` and for the step of `check`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "assembly/assembly.h"
#include "job/job_config.h"
#include "pipeline/pipeline.h"
#include "run/run.h"

namespace redco {

// Files and settings are read together, so that an error is the same on all ranks and printed once. Keys of
// the model's config that the data decide become part of the run's job. Collective.
Assembly assemble_training(Run& run);

// The job's pipeline with the settings of evaluation's answers. `per_device`: the training's batch size.
// `parts` must outlive it.
std::unique_ptr<Pipeline> make_training_pipeline(const JobConfig& job, const Assembly& parts, i64 per_device);

// The checks of make_job_params() without the values: names, shapes and types of all parameters against the
// headers of the files. Throws its errors. On one planned rank, without the other ranks.
void check_weights(const JobConfig& job, const ModelSource& source, const Model* model,
                   const ModelParams& params, const ParamStorage& storage,
                   const std::vector<NamedParts>& named);
// The same of all weights that the training reads. A folder may hold only a config, where a job is planned:
// returns those folders, and checks nothing then.
std::vector<std::string> check_training_weights(const JobConfig& job, const Assembly& parts,
                                                const Pipeline& pipeline);

}  // namespace redco

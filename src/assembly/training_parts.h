// The parts of a training run: for `train` and for the step of `check`.
#pragma once

#include <memory>

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

}  // namespace redco

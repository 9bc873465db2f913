// The state that a training begins with: that of the job, of a checkpoint or of a buddy checkpoint.
#pragma once

#include <optional>

#include "train/buddy.h"
#include "train/resume.h"
#include "train/step.h"
#include "train/trainer.h"

namespace redco {

// All functions are collective, in the current context.

// Of the job, before the first step.
TrainState state_of_job(const TrainJob& job, const TrainStep& step);

// Loads the checkpoint of `start` into the tensors of `what`. `now`: state_of_job().
TrainState begin_from_checkpoint(const TrainJob& job, const RunStart& start, const TrainState& now,
                                 CheckpointContents what);

// Loads a buddy checkpoint into its tensors, if one is newer than the checkpoint of `start`; nullopt: none
// is, or the job does not resume what it finds.
std::optional<TrainState> begin_from_copy(const TrainJob& job, const RunStart& start, const TrainState& now,
                                          BuddyCopies& copies);

}  // namespace redco

// The learning rate schedule of a job.
#pragma once

#include "optim/schedule.h"
#include "train/train_settings.h"

namespace redco {

// The pieces of train.schedule. UsageError: they contradict each other.
Schedule schedule_of(const TrainSettings& settings, i64 total_steps);

}  // namespace redco

// Where a run goes on: its checkpoint, whether the job is still the same, and the workdir as it was then.
#pragma once

#include <string>

#include "train/checkpoint.h"

namespace redco {

// The checkpoint that checkpoint.resume (`auto`, `never` or a folder) names; "" to start a new run. `auto`
// takes the newest whole one of `folder` and warns of what it skips: unfinished saves, and checkpoints
// without a manifest or with a file that is missing or short. IoError or ContentsError where a checkpoint is
// bad in another way; the message names the newest older whole one. Collective.
std::string find_checkpoint(const std::string& resume, const std::string& folder);

// The state in a checkpoint. UsageError where the run could not go on as if it had never stopped: `job` has
// another seed, batch size, pipeline or tokenizer, or no optimizer was saved. Warns where bits may differ.
// Collective.
TrainState resume_state(const std::string& checkpoint, const TrainState& job);
// The same for the training data, which are known only once the pipeline is restored.
void check_same_data(const std::string& checkpoint, const TrainState& saved, const TrainState& job);

// Brings the workdir back to `state`: a save that was killed may have left pointers at older checkpoints, and
// outputs of evaluations that will be made again. `checkpoint`: the one it goes on from. First rank only.
void set_workdir_back(const std::string& workdir, const std::string& checkpoint, const TrainState& state);

}  // namespace redco

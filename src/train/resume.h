// Resume: the checkpoint to continue from, the check that the job is the same, and the state of the workdir.
#pragma once

#include <string>
#include <vector>

#include "train/checkpoint.h"
#include "workdir/run_record.h"

namespace redco {

struct RunStart {
  std::string checkpoint;  // the checkpoint to resume from; "": none, step 0
  bool inside = false;     // the checkpoint is in the workdir
  i64 step = -1;           // of the checkpoint; -1: none
  RunRecord record;        // the run from now on
  // Actions of open_run(): if `begins`, move the `old` files out of the workdir and write run.json.
  bool begins = false;
  std::string old_id;
  OldFiles old;
};

// Evaluates checkpoint.resume. Collective; changes nothing. Only the first rank gets more than `checkpoint`
// and `step`.
//   auto   the newest complete checkpoint of the workdir's run; a new run if there is none. Warns about what
//          it skips: unfinished saves, and checkpoints without a manifest or with a missing or short file.
//   never  a new run from step 0; the files of the old run are moved aside
//   PATH   a new run that continues the run of this checkpoint after its step; the files of the old run are
//          moved aside, except the files that the new run continues
// IoError or ContentsError if a checkpoint is bad in another way; the message names the newest older complete
// checkpoint.
// slurm_job: for the record of a run that begins.
RunStart find_start(const std::string& resume, const std::string& workdir, const std::string& slurm_job = "");

// Begins the run in the workdir: moves the old run aside, logs it, and writes run.json with a new start that
// begins after `step`. Returns the run with this start. First rank only.
ckpt::RunIdentity open_run(const std::string& workdir, const RunStart& start, i64 step);

// The state in a checkpoint. UsageError if the resumed run could not equal the uninterrupted one: `job` has
// another seed, batch size, pipeline or tokenizer, or the optimizer state was not saved. Warns if bits may
// differ. Collective.
TrainState resume_state(const std::string& checkpoint, const TrainState& job);
// Its checks of the values, for another source of the state.
void check_resumed_state(const std::string& source, const TrainState& saved, const TrainState& job);
// The same check for the training data, which are known only after the pipeline is restored. begins_epoch:
// the run begins an epoch, for which the pipeline may have made other examples (without_epoch_digest()).
void check_same_data(const std::string& checkpoint, const TrainState& saved, const TrainState& job,
                     bool begins_epoch);

// Sets the workdir back to `state`: a save that was killed may have left pointers to older checkpoints;
// outputs of evaluations that the run will repeat are removed. First rank only.
void set_workdir_back(const std::string& workdir, const RunStart& start, const TrainState& state);

// UsageError unless source() returned the same examples on all ranks; ContentsError: none. Collective.
void check_examples(const Dataset* examples);

}  // namespace redco

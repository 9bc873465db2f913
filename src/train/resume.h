// Where a run goes on: its checkpoint, whether the job is still the same, and the workdir as it was then.
#pragma once

#include <string>
#include <vector>

#include "train/checkpoint.h"
#include "train/run_record.h"

namespace redco {

struct RunStart {
  std::string checkpoint;  // where the run resumes; "": from step 0
  bool inside = false;     // the checkpoint lies in the workdir
  RunRecord record;        // of the run from now on
  // What open_run() does: write run.json where `begins`, and move these out of the workdir first.
  bool begins = false;
  std::string old_id;
  std::vector<std::string> old_names;  // inside the workdir
};

// What checkpoint.resume says. Collective; changes nothing. Ranks but the first get `checkpoint` alone.
//   auto   the newest whole checkpoint of the workdir's run; a new run where there is none. Warns of what it
//          skips: unfinished saves, and checkpoints without a manifest or with a file that is missing or
//          short.
//   never  a new run, from step 0; all that the old one left is moved aside
//   PATH   a new run that continues the one that made this checkpoint, from its step on; what the old one
//   left
//          is moved aside, except for what the new one continues
// IoError or ContentsError where a checkpoint is bad in another way; the message names the newest older whole
// one.
RunStart find_start(const std::string& resume, const std::string& workdir);

// Begins the run in the workdir: moves the old one aside, says so, and writes run.json. First rank only.
void open_run(const std::string& workdir, const RunStart& start);

// The state in a checkpoint. UsageError where the run could not go on as if it had never stopped: `job` has
// another seed, batch size, pipeline or tokenizer, or no optimizer was saved. Warns where bits may differ.
// Collective.
TrainState resume_state(const std::string& checkpoint, const TrainState& job);
// The same for the training data, which are known only once the pipeline is restored.
void check_same_data(const std::string& checkpoint, const TrainState& saved, const TrainState& job);

// Brings the workdir back to `state`: a save that was killed may have left pointers at older checkpoints, and
// outputs of evaluations that will be made again. First rank only.
void set_workdir_back(const std::string& workdir, const RunStart& start, const TrainState& state);

}  // namespace redco

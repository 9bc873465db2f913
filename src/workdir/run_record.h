// workdir/run.json: the run that a workdir holds. Also moves an old run out of a workdir.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "workdir/run_identity.h"

namespace redco {

struct RunRecord {
  ckpt::RunIdentity run;
  std::string started;       // "2026-11-22T11:30:00Z"
  std::string resumed_from;  // path of the checkpoint if the run began with checkpoint.resume=PATH; else ""
  std::string slurm_job;     // the SLURM job that began the run (launch/slurm.h); "": none
};

// nullopt: no run.json. ContentsError: the file is not valid.
std::optional<RunRecord> read_run_record(const std::string& workdir);

// Numbers a new start of the workdir's run, which begins after `step`, and writes it to run.json. Returns the
// run with this start. REQUIRES: run.json exists. First rank only, with the workdir's lock.
ckpt::RunIdentity begin_start(const std::string& workdir, i64 step);
// Error(rank_failed) if a later start than `run`'s, or another run, has taken over the workdir: this process
// must not write there any more. A run without a number of its start passes.
void require_newest_start(const std::string& workdir, const ckpt::RunIdentity& run);

// Files of an old run, relative to the workdir. Those that the new run continues, and cuts, are copied.
struct OldFiles {
  std::vector<std::string> moved, copied;
};

// Begins a run in `workdir`: puts the old files into workdir/previous/OLD_ID/ under the same names, then
// writes `record` to run.json. Both are durable. Missing names are ignored. If the process is killed,
// finish_move() completes the move. First rank only. Returns the folder under previous/, relative to the
// workdir; "" if there were no old files.
std::string begin_run(const std::string& workdir, const RunRecord& record, const std::string& old_id,
                      const OldFiles& old);
// Completes a begin_run() that was killed, if there was one. First rank only, before any other use of the
// workdir.
void finish_move(const std::string& workdir);

std::string utc_now();

}  // namespace redco

// workdir/run.json: which run a workdir holds. And the way of an old run out of a workdir.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ckpt/run_identity.h"

namespace redco {

struct RunRecord {
  ckpt::RunIdentity run;
  std::string started;       // "2026-11-22T11:30:00Z"
  std::string resumed_from;  // the checkpoint's path where the run began by checkpoint.resume=PATH; else ""
};

// nullopt: there is no run.json. ContentsError: it can't be read as one.
std::optional<RunRecord> read_run_record(const std::string& workdir);

// A run is begun in `workdir`: what `old_names` (paths inside the workdir) name goes to
// workdir/previous/OLD_ID/ under the same names, then run.json is `record`. Both are durable. What is not
// there is ignored. Killed at any moment: finish_move() does the rest. First rank only. Returns the folder
// under previous/, inside the workdir; "" where nothing was moved.
std::string begin_run(const std::string& workdir, const RunRecord& record, const std::string& old_id,
                      const std::vector<std::string>& old_names);
// Completes a begin_run() that was killed; nothing to do is fine. First rank only, before anything else looks
// at the workdir.
void finish_move(const std::string& workdir);

std::string utc_now();

}  // namespace redco

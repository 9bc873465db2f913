// The run that made a checkpoint, the runs that it continues, and the starts of the run.
//
// Each start of a run (a resume, also by a supervisor) has a number, which is in run.json and in the
// manifests of its checkpoints. So a process of a former start that comes back, from a host that had no
// network for a while, changes nothing: it may not publish once a later start has begun
// (require_newest_start()), and a checkpoint that it published nevertheless, after the step where a later
// start began, does not count.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/types.h"

namespace redco::ckpt {

struct RunIdentity {
  // 32 lower-case hexadecimal digits; "" in checkpoints of format 1, which had no id.
  std::string id;
  // The runs that this one continues, the oldest first: each up to and including `step`, where the next
  // begins.
  struct Ancestor {
    std::string run;
    i64 step = 0;
    bool operator==(const Ancestor&) const = default;
  };
  std::vector<Ancestor> lineage;
  // The number of the start, from 1: of the newest one in run.json, of the one that saved in a manifest. 0:
  // not known, in files of older versions.
  i64 start = 0;
  // In run.json: where starts began, in the order of their numbers. A start is left out if a later one began
  // at the same step or before, because that one says more.
  struct Start {
    i64 number = 0, step = 0;
    bool operator==(const Start&) const = default;
  };
  std::vector<Start> starts;
  bool operator==(const RunIdentity&) const = default;

  // Whether the checkpoint that `maker` made after `step` belongs to this run or to a run that it continues.
  // False for what a former start of this run made after a later one had begun.
  bool holds(const RunIdentity& maker, i64 step) const;
  // A new run that continues this one after `step`.
  RunIdentity child(i64 step) const;
  // Numbers a new start of this run, which begins after `step`.
  void begin_start(i64 step);
};

std::string new_run_id();  // 128 random bits

// {"id": "...", "lineage": [{"run": "...", "step": 20}], "start": 2, "starts": [{"start": 2, "step": 40}]};
// without the last two if they are not known
nlohmann::json to_json(const RunIdentity& run);
// ContentsError that begins with `where` on anything else.
RunIdentity parse_run_identity(const nlohmann::json& j, const std::string& where);

}  // namespace redco::ckpt

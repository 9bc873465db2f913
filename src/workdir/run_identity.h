// The run that made a checkpoint, and the runs that it continues.
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
  bool operator==(const RunIdentity&) const = default;

  // Whether the checkpoint that `run` made after `step` belongs to this run or to a run that it continues.
  bool holds(const std::string& run, i64 step) const;
  // A new run that continues this one after `step`.
  RunIdentity child(i64 step) const;
};

std::string new_run_id();  // 128 random bits

// {"id": "...", "lineage": [{"run": "...", "step": 20}]}
nlohmann::json to_json(const RunIdentity& run);
// ContentsError that begins with `where` on anything else.
RunIdentity parse_run_identity(const nlohmann::json& j, const std::string& where);

}  // namespace redco::ckpt

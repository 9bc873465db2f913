// Which run made a checkpoint, and which runs it continues.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/types.h"

namespace redco::ckpt {

struct RunIdentity {
  // 32 lower-case hexadecimal digits; "" in checkpoints of format 1, which had none.
  std::string id;
  // The runs that this one continues, the oldest first: each up to and with `step`, where the next begins.
  struct Ancestor {
    std::string run;
    i64 step = 0;
    bool operator==(const Ancestor&) const = default;
  };
  std::vector<Ancestor> lineage;
  bool operator==(const RunIdentity&) const = default;

  // Does the checkpoint that `run` made after `step` belong to this run or to what it continues?
  bool holds(const std::string& run, i64 step) const;
  // A new run that continues this one from `step` on.
  RunIdentity child(i64 step) const;
};

std::string new_run_id();  // 128 random bits

// {"id": "...", "lineage": [{"run": "...", "step": 20}]}
nlohmann::json to_json(const RunIdentity& run);
// ContentsError, which begins with `where`, on anything else.
RunIdentity parse_run_identity(const nlohmann::json& j, const std::string& where);

}  // namespace redco::ckpt

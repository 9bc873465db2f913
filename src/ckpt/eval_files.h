// Names of the files in WORKDIR/eval_outputs: the answers of an evaluation, and its details.
#pragma once

#include <optional>
#include <string>

#include "base/types.h"

namespace redco::ckpt {

struct EvalFile {
  i64 step = 0;
  std::string set;       // the evaluation set's name; "" if it is the only one
  bool details = false;  // else the answers

  bool operator==(const EvalFile&) const = default;
};

// "step-00000020.jsonl", "step-00000020.SET.details.json"
std::string file_name_of(const EvalFile& f);
// nullopt for other names.
std::optional<EvalFile> parse_eval_file(const std::string& name);

}  // namespace redco::ckpt

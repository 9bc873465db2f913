// The weights of loss terms for which collate() gives none.
#pragma once

#include <optional>
#include <span>

#include "pipeline/pipeline.h"

namespace redco::python {

// The class attributes `terms` and `unit`.
struct DefaultWeights {
  std::vector<std::string> terms;
  std::string unit;

  // Gives each of `terms` without a weight in the batch its default: the number of this replica's rows, or
  // the number of labels that count (>= 0) if the unit is "tokens". labels: this replica's elements of the
  // field `labels`; nullopt: there is no such field of ids, which is a PythonError if tokens are the unit.
  void add_to(Batch& batch, i64 rows, std::optional<std::span<const i32>> labels) const;
};

}  // namespace redco::python

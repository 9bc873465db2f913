// The checks of generated ids, beam scores and sampling probabilities.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/model.h"
#include "verify/expected.h"

namespace redco {

// Receives the result for a tensor of `expected`: ids [rows, tokens], padded to one length, or values.
struct GenerationChecks {
  std::function<void(const std::string& name, const std::vector<std::vector<i32>>& rows, i32 pad)> ids;
  std::function<void(const std::string& name, const std::vector<double>& values)> values;
};

// Generates what `expected` has, from gen_input_ids, padded_input_ids or pixel_values, and passes each result
// to the checks. Runs on the current context's mp group. `folder` has config.json and optionally
// generation_config.json.
void check_generation(const std::string& folder, const Expected& expected, const Model& model,
                      const ParamTree& params, const GenerationChecks& checks);

}  // namespace redco

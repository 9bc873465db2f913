// How much errors in the columns of a matrix matter when the matrix is quantized.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gguf/error_feedback.h"

namespace redco::ckpt {

struct Importance {
  std::vector<float> squares;  // of each column: the mean square of this input of the layer
  // From products of the inputs, of all columns; null: inputs count as uncorrelated.
  std::shared_ptr<const gguf::ErrorFeedback> feedback;
};

using Importances = std::map<std::string, Importance>;  // by the parameter's name

// As bytes: a line of JSON, then the coefficients of each feedback once, in the order of its first matrix.
std::string to_bytes(const Importances& all);
// nullopt: other bytes.
std::optional<Importances> importances_of_bytes(const std::string& bytes);

}  // namespace redco::ckpt

// How much an error in each column of a matrix matters when the matrix is quantized.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace redco::ckpt {

// By the parameter's name: a number for each column, the mean square of this input of the layer.
using Importances = std::map<std::string, std::vector<float>>;

}  // namespace redco::ckpt

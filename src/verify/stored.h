// Parameters in the form of the stored tensors: parts joined, transposes undone.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nn/param_tree.h"

namespace redco {

// Elements [first, first + index.size()) of a parameter, and their places in a stored tensor.
struct StoredPiece {
  std::string name;        // the stored tensor
  i64 size = 0;            // its elements
  i64 first = 0;           // first element of the parameter
  std::vector<i64> index;  // element first + j is at index[j]
};

// Every place of the parameter in a file: the tensors that transformers writes, and those of its module if
// the names differ (StoredAs::joined).
std::vector<StoredPiece> stored_pieces(const ParamSpec& s);

// Whole tensors by stored name. Collective.
std::map<std::string, std::vector<double>> by_stored_name(const ParamTree& tree);

}  // namespace redco

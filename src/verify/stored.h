// Parameters by the tensors that files store them in: parts joined, transposed back.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nn/param_tree.h"

namespace redco {

// Elements [first, first + index.size()) of a parameter, and where they lie in a stored tensor.
struct StoredPiece {
  std::string name;        // the stored tensor
  i64 size = 0;            // its elements
  i64 first = 0;           // of the parameter
  std::vector<i64> index;  // element first + j lies at index[j]
};

// Every place where a file may hold the parameter: the tensors that transformers writes, and those of its
// module where the names differ (StoredAs::joined).
std::vector<StoredPiece> stored_pieces(const ParamSpec& s);

// Whole tensors by stored name. Collective.
std::map<std::string, std::vector<double>> by_stored_name(const ParamTree& tree);

}  // namespace redco

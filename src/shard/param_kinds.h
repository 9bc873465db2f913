// The kind of each parameter (linear, embedding, ...) from names, shapes and order. Part of shard/roles.cpp.
#pragma once

#include <vector>

#include "shard/param_index.h"

namespace redco {

// One kind per parameter. ParamInfo::kind decides where it is set and fits the shape.
std::vector<ParamKind> find_kinds(const ParamIndex& index);

// Whether a parameter of this kind is a matrix, which a rule may cut.
bool is_matrix(ParamKind kind);

// Whether the parameter is a table of attention biases (buckets, heads), as in T5.
bool is_bias_table(const ParamIndex& index, int i);

// Whether the parameter's name is that of an LM head.
bool names_head(const ParamIndex& index, int i);

}  // namespace redco

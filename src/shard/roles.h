// The role of each parameter: declared by the model family, or found from names, shapes and order of
// definition. Used by shard/rules.cpp only.
//
// In a model that declares no roles, names are examined first, by their words in any spelling
// (shard/param_name.h): query, up, embed, ..., and modules called attention or mlp. Shapes and order decide
// where names do not. Inside a repeated block, three linears with the same input followed by one that maps
// back are q, k, v and output. One layer that widens (or two of equal shape) followed by one that maps back
// is a fully-connected pair. A table (rows, hidden) before the first block is an embedding; a linear after
// the last block with as many outputs as the table has rows is the LM head.
#pragma once

#include <string>
#include <vector>

#include "shard/param_name.h"
#include "shard/rules.h"

namespace redco {

// The names of the rules, as the plan prints them.
namespace rule {
inline constexpr const char* kAttentionIn = "attention q/k/v";
inline constexpr const char* kAttentionOut = "attention output";
inline constexpr const char* kFirst = "fully connected, first";
inline constexpr const char* kSecond = "fully connected, second";
inline constexpr const char* kExperts = "experts, some to each";
inline constexpr const char* kEmbedding = "embedding";
inline constexpr const char* kBiasTable = "attention bias table: follows the heads";
inline constexpr const char* kHead = "lm head";
inline constexpr const char* kNorm = "norm";
inline constexpr const char* kColumnBias = "bias follows its column";
inline constexpr const char* kRowBias = "bias of row-split layer";
inline constexpr const char* kWholeBias = "bias of replicated layer";
inline constexpr const char* kVector = "replicated: a vector";
inline constexpr const char* kRouter = "replicated: router";
inline constexpr const char* kShared = "replicated: shared by the heads";
inline constexpr const char* kGiven = "cut given by the model";
inline constexpr const char* kAlternate = "default: alternate";
inline constexpr const char* kUnsplittable = "replicated: no dim can be split";
}  // namespace rule

struct RoleInfo {
  Role role = Role::rest;
  ParamKind kind = ParamKind::other;
  int owner = -1;     // bias: index of its weight; -1 if none was found
  int order = 0;      // attention_in: 0 q (or fused), 1 k, 2 v; the order within a row of the plan's table
  std::string scope;  // rest: tensors of the same scope alternate
};

// One entry per parameter. Given kinds and roles are used instead of detected ones.
std::vector<RoleInfo> find_roles(const std::vector<ParamInfo>& params, const std::vector<ParamName>& names);

}  // namespace redco

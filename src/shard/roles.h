// What part each parameter plays, found from names, shapes and order of definition. Used by shard/rules.cpp
// only.
//
// Names are asked first, by their words (shard/param_name.h): query, up, embed, ... in any spelling, inside
// modules called attention or mlp. What names don't say, shapes and order do: inside a repeated block three
// linears of one input followed by one that maps back are q, k, v and output; one that widens (or two alike)
// followed by one that maps back is a fully-connected pair; a table (rows, hidden) before the first block is
// an embedding, a linear onto an embedding's rows after the last one is the LM head.
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
inline constexpr const char* kAlternate = "default: alternate";
inline constexpr const char* kUnsplittable = "replicated: no dim can be split";
}  // namespace rule

enum class Role : unsigned char {
  attention_in,  // q, k, v, alone or fused
  attention_out,
  first,   // fully connected, cut along the output
  second,  // fully connected, cut along the input
  embedding,
  bias_table,  // (buckets, heads): T5's relative attention bias
  head,
  norm,
  bias,    // of the tensor in `owner`
  router,  // of a mixture of experts: every rank routes alike
  shared,  // a matrix of an attention that all heads share
  vector,  // any other tensor with at most one dim longer than 1
  rest,    // everything else: alternates within `scope`
};

struct RoleInfo {
  Role role = Role::rest;
  ParamKind kind = ParamKind::other;
  int owner = -1;     // bias: index of the weight it belongs to, -1 none was found
  int order = 0;      // attention_in: 0 q (or fused), 1 k, 2 v: the order within a row of the table
  std::string scope;  // rest: tensors of one scope alternate
};

// One entry per parameter. `kinds` of the parameters are believed where given, if `use_hints`.
std::vector<RoleInfo> find_roles(const std::vector<ParamInfo>& params, const std::vector<ParamName>& names,
                                 bool use_hints);

}  // namespace redco

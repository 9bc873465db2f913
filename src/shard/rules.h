// The automatic sharding of RedCoast (Tan et al., NAACL 2024): which dim of each parameter is cut over the
// mesh axis mp. From names, shapes and order of definition alone, for any transformer; no model family is
// known here.
//
//  1. fully-connected layers of a block alternate: the first is cut along its output, the next along its
//  input; gated
//     pairs count as one 'first'; stacked experts are dealt to the shards, whole, while every shard gets one;
//  2. attention: q, k, v along the output, the output projection along the input;
//  3. embeddings along their rows, the LM head along its output; norms and the biases of row-split layers are
//     replicated, the biases of column-split layers follow their column; everything else with two or more
//     dims alternates in order of definition, or is replicated where no dim can be split.
//
// Rules of the user come first. All functions are pure: equal inputs give equal results on every rank.
//
// Shapes are those in memory: linear (..., out, in), where leading dims are stacked experts; embedding (rows,
// hidden); conv (out, in, kernel...). Specs are in the paper's order: linear (..., in, out), embedding (rows,
// hidden), conv (kernel..., in, out), anything else as in memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/types.h"

namespace redco {

// What a tensor is, which fixes how a spec's entries map to its dims. `norm` is scale and bias of a
// normalization, `bias` the bias of a linear or convolution, `other` whatever else (a class token, a buffer).
enum class ParamKind : unsigned char { linear, embedding, conv, norm, bias, other };
const char* name_of(ParamKind kind);

struct ParamInfo {
  std::string name;  // Hugging Face's; a part of a fused tensor as `transformer.h.0.attn.c_attn.weight[q]`
  Shape shape;       // in memory
  std::optional<ParamKind> kind =
      std::nullopt;  // known to the model family; else found from name, shape and order
  // How many pieces each dim can be cut into at most (heads, not columns); empty: as many as it is long. A
  // dim of one piece is never cut, so a family that keeps K/V whole (to repeat grouped heads) says 1.
  std::vector<i64> max_pieces = {};
};

// An entry of `sharding_rules:`. The first rule that matches the whole name and has as many entries as the
// tensor has dims decides. On a fused tensor a rule for `x.weight` also matches each `x.weight[part]`.
struct CustomRule {
  std::string match;                             // a regular expression (shard/name_regex.h)
  std::vector<std::optional<std::string>> spec;  // "mp" (at most once) or nothing, in the paper's order
};

struct ShardingRule {
  int dim = -1;         // the dim of the in-memory shape that is cut over mp; -1: replicated
  std::string rule;     // the rule that fired, one of rule:: in shard/roles.h, or "custom: <match>"
  std::string pattern;  // the row of the plan's table it belongs to, e.g. "(q_proj|k_proj|v_proj).weight"
};

// A row of the plan's table, as in the paper's Figures 7 and 8; layers and fused parts collapse.
struct RuleRow {
  std::string pattern;
  std::vector<std::optional<std::string>> spec;  // "mp" or nothing, in the paper's order
  std::string rule;
  i64 tensors = 0;
  bool below_bias_row =
      false;  // a bias split with its column: the paper replicates it; printed in a line below
};

struct Sharding {
  std::vector<ShardingRule> rules;    // one per parameter, in the given order
  std::vector<ParamKind> kinds;       // the hint, or what was found
  std::vector<RuleRow> rows;          // the table
  std::vector<std::string> warnings;  // custom rules that changed nothing, and why
};

// Throws UsageError where n_model_shards < 1, a custom rule isn't well formed, or a parameter's max_pieces
// doesn't fit its shape.
Sharding shard_parameters(const std::vector<ParamInfo>& params, i64 n_model_shards,
                          const std::vector<CustomRule>& custom = {});

// The kinds as found from names, shapes and order, hints ignored.
std::vector<ParamKind> detect_kinds(const std::vector<ParamInfo>& params);

// spec_dims(kind, n)[i] is the in-memory dim that entry i of a spec with n entries is about.
std::vector<int> spec_dims(ParamKind kind, int n_dims);

// The table as text, a row a line: pattern, spec, rule, number of tensors.
std::string format_rules_table(const std::vector<RuleRow>& rows);

std::string format_spec(
    const std::vector<std::optional<std::string>>& spec);  // "(None, mp)", and "None" for one dim

}  // namespace redco

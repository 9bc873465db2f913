// The automatic sharding of RedCoast (Tan et al., NAACL 2024): which dim of each parameter is cut over the
// mesh axis mp. Works for any transformer from names, shapes and order of definition; no model family is
// hard-coded.
//
//  1. Fully-connected layers of a block alternate: the first is cut along its output, the next along its
//     input. A gated pair counts as one 'first'. Stacked experts are distributed whole if every shard gets
//     at least one.
//  2. Attention: q, k, v along the output, the output projection along the input.
//  3. Embeddings along their rows, the LM head along its output. Norms and the biases of row-split layers are
//     replicated; the biases of column-split layers are cut with their column. All other tensors with two or
//     more dims alternate in order of definition, or are replicated if no dim can be split.
//
// Custom rules come first, then the cuts that the model family gives. All functions are pure: equal inputs
// give equal results on every rank.
//
// Shapes are those in memory: linear (..., out, in), where leading dims are stacked experts; embedding (rows,
// hidden); conv (out, in, kernel...). Specs are in the paper's order: linear (..., in, out), embedding (rows,
// hidden), conv (kernel..., in, out), all others as in memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/types.h"

namespace redco {

// What a tensor is, which decides how a spec's entries map to its dims. `norm`: scale or bias of a
// normalization; `bias`: bias of a linear or convolution; `other`: anything else (a class token, a buffer).
enum class ParamKind : unsigned char { linear, embedding, conv, norm, bias, other };
const char* name_of(ParamKind kind);

// What a parameter does in the model, which decides its cut.
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
  router,  // of a mixture of experts; replicated, so that every rank selects the same experts
  shared,  // a matrix of an attention that all heads use
  vector,  // any other tensor with at most one dim longer than 1
  rest,    // all others: alternates within `scope`
};

struct ParamInfo {
  std::string name;  // Hugging Face name; a part of a fused tensor: `transformer.h.0.attn.c_attn.weight[q]`
  Shape shape;       // in memory
  // Given by the model family; nullopt: detected from name, shape and order.
  std::optional<ParamKind> kind = std::nullopt;
  // Declared by the model family. If a parameter of the model has one, nothing is found from words:
  // embeddings, norms and biases follow from their kinds, and other matrices alternate.
  std::optional<Role> role = std::nullopt;
  // Given by the model family: the dim that is cut, -1: none. Then neither role nor name decides.
  std::optional<int> cut = std::nullopt;
  int order = 0;  // of query, key and value in a row of the plan's table, if the role is given
  // The largest number of pieces that each dim can be cut into (heads, not columns); empty: the dim's length.
  // A dim of one piece is never cut; families that keep K/V whole (to repeat grouped heads) use 1.
  Shape max_pieces = {};
};

// An entry of `sharding_rules:`. The first rule decides that matches the whole name and has one entry per dim
// of the tensor. For a fused tensor, a rule for `x.weight` also matches each `x.weight[part]`.
struct CustomRule {
  std::string match;                             // a regular expression (shard/name_regex.h)
  std::vector<std::optional<std::string>> spec;  // "mp" (at most once) or nullopt, in the paper's order
  std::string of{};  // the model of `models:` that it is for; "": the job's model (nn/param_tree.h)
};

struct ShardingRule {
  int dim = -1;         // the dim of the in-memory shape that is cut over mp; -1: replicated
  std::string rule;     // the rule that was applied: one of rule:: in shard/roles.h, or "custom: <match>"
  std::string pattern;  // its row of the plan's table, e.g. "(q_proj|k_proj|v_proj).weight"
};

// A row of the plan's table, as in the paper's Figures 7 and 8. One row covers all layers and fused parts.
struct RuleRow {
  std::string pattern;
  std::vector<std::optional<std::string>> spec;  // "mp" or nullopt, in the paper's order
  std::string rule;
  i64 tensors = 0;
  // A bias that is cut with its column, which the paper replicates; printed in a separate line.
  bool below_bias_row = false;
};

struct Sharding {
  std::vector<ShardingRule> rules;    // one per parameter, in the given order
  std::vector<ParamKind> kinds;       // the given kind, or the detected one
  std::vector<RuleRow> rows;          // the table
  std::vector<std::string> warnings;  // custom rules without effect, with the reason
};

// Throws UsageError if n_model_shards < 1, a custom rule is malformed, or a parameter's max_pieces does not
// fit its shape.
Sharding shard_parameters(const std::vector<ParamInfo>& params, i64 n_model_shards,
                          const std::vector<CustomRule>& custom = {});

// spec_dims(kind, n)[i] is the in-memory dim of entry i in a spec with n entries.
std::vector<int> spec_dims(ParamKind kind, int n_dims);

// The table as text, one line per row: pattern, spec, rule, number of tensors.
std::string format_rules_table(const std::vector<RuleRow>& rows);

std::string format_spec(
    const std::vector<std::optional<std::string>>& spec);  // "(None, mp)"; "None" for one dim

}  // namespace redco

#include "shard/rules.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "shard/name_regex.h"
#include "shard/param_name.h"
#include "shard/roles.h"
#include "shard/rules_table.h"

namespace redco {
namespace {

struct CompiledRule {
  NameRegex regex;
  int entries = 0;       // number of the spec's entries = number of dims of the tensors
  int entry = -1;        // index of the entry that is mp; -1: replicated
  bool applied = false;  // to at least one tensor
  bool whole = false;    // the rule names a dim that cannot be split

  bool matches(const ParamName& p) const {
    return regex.matches(p.full) || (!p.part.empty() && regex.matches(p.base));
  }
};

std::vector<CompiledRule> compile(const std::vector<CustomRule>& rules) {
  std::vector<CompiledRule> out;
  for (const CustomRule& r : rules) {
    CompiledRule c{NameRegex(r.match), static_cast<int>(r.spec.size())};
    for (std::size_t i = 0; i < r.spec.size(); ++i) {
      if (!r.spec[i]) continue;
      if (*r.spec[i] != "mp")
        throw UsageError("[sharding_rules] match: '{}': unknown mesh axis '{}' in spec; expected mp or ~",
                         r.match, *r.spec[i]);
      if (c.entry >= 0)
        throw UsageError(
            "[sharding_rules] match: '{}': spec {} names mp twice; only one dim of a tensor can be split",
            r.match, format_spec(r.spec));
      c.entry = static_cast<int>(i);
    }
    out.push_back(std::move(c));
  }
  return out;
}

class Assigner {
 public:
  Assigner(const std::vector<ParamInfo>& params, i64 n, const std::vector<RoleInfo>& roles,
           const std::vector<ParamName>& names, std::vector<CompiledRule>& custom,
           std::vector<ShardingRule>& out)
      : params_(params), n_(n), roles_(roles), names_(names), custom_(custom), out_(out) {}

  void run() {
    // Weights first, because the rule of a bias follows that of its weight.
    for (int pass = 0; pass < 2; ++pass)
      for (std::size_t i = 0; i < params_.size(); ++i)
        if ((roles_[i].role == Role::bias) == (pass == 1) && !by_custom_rule(i) && !by_given_cut(i))
          by_role(i);
  }

 private:
  i64 pieces(std::size_t i, int dim) const {
    const ParamInfo& p = params_[i];
    return p.max_pieces.empty() ? p.shape[dim] : std::min(p.max_pieces[dim], p.shape[dim]);
  }
  bool can_split(std::size_t i, int dim) const { return pieces(i, dim) > 1; }
  int rank(std::size_t i) const { return static_cast<int>(params_[i].shape.size()); }

  bool by_custom_rule(std::size_t i) {
    for (CompiledRule& r : custom_) {
      if (!r.matches(names_[i])) continue;
      if (r.entries != rank(i)) continue;
      r.applied = true;
      int dim = r.entry < 0 ? -1 : spec_dims(roles_[i].kind, rank(i))[r.entry];
      if (dim >= 0 && !can_split(i, dim)) {
        r.whole = true;
        dim = -1;
      }
      out_[i].dim = dim;
      out_[i].rule = "custom: " + r.regex.expression();
      return true;
    }
    return false;
  }

  bool by_given_cut(std::size_t i) {
    if (!params_[i].cut) return false;
    if (*params_[i].cut < 0) {
      out_[i].rule = rule::kGiven;
    } else {
      split(i, *params_[i].cut, rule::kGiven);
    }
    return true;
  }

  void split(std::size_t i, int dim, const char* rule) {
    const bool can = can_split(i, dim);
    out_[i].dim = can ? dim : -1;
    out_[i].rule = can ? rule : rule::kUnsplittable;
  }

  // Stacked experts are kept whole if every shard gets at least one; otherwise they are cut like any
  // fully-connected layer.
  bool has_experts_for_all(std::size_t i) const {
    return rank(i) > 2 && can_split(i, 0) && pieces(i, 0) >= n_;
  }

  void by_role(std::size_t i) {
    const int last = rank(i) - 1;
    switch (roles_[i].role) {
      case Role::attention_in:
        return split(i, last - 1, rule::kAttentionIn);
      case Role::attention_out:
        return split(i, last, rule::kAttentionOut);
      case Role::first:
        if (has_experts_for_all(i)) return split(i, 0, rule::kExperts);
        return split(i, last - 1, rule::kFirst);
      case Role::second:
        if (has_experts_for_all(i)) return split(i, 0, rule::kExperts);
        return split(i, last, rule::kSecond);
      case Role::embedding:
        return split(i, last - 1, rule::kEmbedding);
      case Role::bias_table:
        return split(i, last, rule::kBiasTable);
      case Role::head:
        return split(i, last - 1, rule::kHead);
      case Role::norm:
        out_[i].rule = rule::kNorm;
        return;
      case Role::router:
        out_[i].rule = rule::kRouter;
        return;
      case Role::shared:
        out_[i].rule = rule::kShared;
        return;
      case Role::vector:
        out_[i].rule = rule::kVector;
        return;
      case Role::bias:
        return bias(i);
      case Role::rest:
        return alternate(i);
    }
  }

  void bias(std::size_t i) {
    const int owner = roles_[i].owner;
    REDCO_CHECK(owner >= 0);
    const ShardingRule& w = out_[owner];
    const auto dims = alternating_dims(owner);
    if (w.dim >= 0 && w.dim < rank(owner) - 2 && rank(i) == rank(owner) - 1)
      return split(i, w.dim, rule::kExperts);  // bias (experts, out) of a weight (experts, out, in)
    if (w.dim == dims.first) {
      // The last dim, because stacked biases are (experts, out) and BART's bias is (1, V).
      const int dim = rank(i) - 1;
      if (params_[i].shape[dim] == params_[owner].shape[w.dim]) return split(i, dim, rule::kColumnBias);
    }
    out_[i].rule = w.dim >= 0 ? rule::kRowBias : rule::kWholeBias;
  }

  // The (output, input) dims of a tensor, which 'first' and 'second' cut.
  std::pair<int, int> alternating_dims(std::size_t i) const {
    if (roles_[i].kind == ParamKind::conv) return {0, 1};
    return {rank(i) - 2, rank(i) - 1};
  }

  // In each scope, tensors are cut along the output and the input in turn. If the dim in turn has fewer
  // pieces than there are shards, the other one is cut if it keeps more ranks busy. A dim of one piece is
  // never cut.
  void alternate(std::size_t i) {
    const auto [output, input] = alternating_dims(i);
    bool& second = second_[roles_[i].scope];
    const int wanted = second ? input : output, other = second ? output : input;
    const auto share = [&](int dim) { return std::min(pieces(i, dim), n_); };
    const int dim = share(other) > share(wanted) || !can_split(i, wanted) ? other : wanted;
    if (!can_split(i, dim)) {
      out_[i].rule = rule::kUnsplittable;
      return;
    }
    out_[i].dim = dim;
    out_[i].rule = rule::kAlternate;
    second = dim == output;
  }

  const std::vector<ParamInfo>& params_;
  const i64 n_;
  const std::vector<RoleInfo>& roles_;
  const std::vector<ParamName>& names_;
  std::vector<CompiledRule>& custom_;
  std::vector<ShardingRule>& out_;
  std::unordered_map<std::string, bool> second_;  // scope -> whether the next tensor is a 'second'
};

// Warns about a custom rule that has no effect, with the reason.
void warn(const CompiledRule& r, const std::vector<ParamInfo>& params, const std::vector<ParamName>& names,
          std::vector<std::string>& warnings) {
  const std::string& match = r.regex.expression();
  if (r.whole)
    warnings.push_back(
        fmt::format("[sharding_rules] match: '{}' splits a dim of only one piece in some tensors; these "
                    "tensors are replicated",
                    match));
  if (r.applied) return;
  bool name = false, dims = false;
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (!r.matches(names[i])) continue;
    name = true;
    dims |= static_cast<int>(params[i].shape.size()) == r.entries;
  }
  if (dims)
    warnings.push_back(fmt::format(
        "[sharding_rules] match: '{}' is never used: earlier rules match all its parameters", match));
  else if (name)
    warnings.push_back(
        fmt::format("[sharding_rules] match: '{}' matches only tensors whose number of dims is not the "
                    "number of entries in its spec ({})",
                    match, r.entries));
  else
    warnings.push_back(fmt::format(
        "[sharding_rules] match: '{}' matches no parameter; the expression must match the whole name",
        match));
}

void check(const std::vector<ParamInfo>& params, i64 n) {
  if (n < 1) throw UsageError("[shard] n_model_shards={}; expected at least 1", n);
  for (const ParamInfo& p : params)
    if (!p.max_pieces.empty() && p.max_pieces.size() != p.shape.size())
      throw UsageError("[shard] {}: {} entries in max_pieces, but the shape is {}", p.name,
                       p.max_pieces.size(), to_string(p.shape));
  for (const ParamInfo& p : params)
    REDCO_CHECK(!p.cut || *p.cut < static_cast<int>(p.shape.size()), "{} of shape {} has no dim {} to cut",
                p.name, to_string(p.shape), *p.cut);
}

std::vector<ParamName> parse_names(const std::vector<ParamInfo>& params) {
  std::vector<ParamName> names;
  names.reserve(params.size());
  for (const ParamInfo& p : params) names.push_back(parse_param_name(p.name));
  return names;
}

}  // namespace

const char* name_of(ParamKind kind) {
  switch (kind) {
    case ParamKind::linear:
      return "linear";
    case ParamKind::embedding:
      return "embedding";
    case ParamKind::conv:
      return "conv";
    case ParamKind::norm:
      return "norm";
    case ParamKind::bias:
      return "bias";
    case ParamKind::other:
      return "other";
  }
  return "?";
}

std::vector<int> spec_dims(ParamKind kind, int n_dims) {
  std::vector<int> dims(n_dims);
  for (int i = 0; i < n_dims; ++i) dims[i] = i;
  if (kind == ParamKind::linear && n_dims >= 2) std::swap(dims[n_dims - 1], dims[n_dims - 2]);
  if (kind == ParamKind::conv && n_dims >= 3) {
    // In memory (out, in, kernel...), in a spec (kernel..., in, out).
    for (int i = 0; i + 2 < n_dims; ++i) dims[i] = i + 2;
    dims[n_dims - 2] = 1;
    dims[n_dims - 1] = 0;
  }
  return dims;
}

Sharding shard_parameters(const std::vector<ParamInfo>& params, i64 n_model_shards,
                          const std::vector<CustomRule>& custom) {
  check(params, n_model_shards);
  std::vector<CompiledRule> compiled = compile(custom);
  const std::vector<ParamName> names = parse_names(params);
  const std::vector<RoleInfo> roles = find_roles(params, names);
  Sharding s;
  s.rules.resize(params.size());
  for (const RoleInfo& r : roles) s.kinds.push_back(r.kind);
  Assigner(params, n_model_shards, roles, names, compiled, s.rules).run();
  s.rows = make_rules_table(params, names, roles, s.rules);
  for (const CompiledRule& r : compiled) warn(r, params, names, s.warnings);
  return s;
}

}  // namespace redco

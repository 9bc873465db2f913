#include "shard/rules_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "base/words.h"

namespace redco {
namespace {

// Position of a rule in the table: custom rules first, then the paper's order.
int place_of(const std::string& rule) {
  static constexpr const char* kOrder[] = {
      rule::kFirst,     rule::kSecond,    rule::kExperts,      rule::kAttentionIn, rule::kAttentionOut,
      rule::kBiasTable, rule::kEmbedding, rule::kHead,         rule::kGiven,       rule::kAlternate,
      rule::kRouter,    rule::kShared,    rule::kUnsplittable, rule::kVector,      rule::kNorm,
      rule::kRowBias,   rule::kWholeBias, rule::kColumnBias};
  int place = 1;
  for (const char* r : kOrder) {
    if (rule == r) return place;
    ++place;
  }
  return 0;
}

bool is_replicated_vector_rule(const std::string& r) {
  return r == rule::kNorm || r == rule::kRowBias || r == rule::kWholeBias;
}

// Replaces the number in "3" and "block_3" by "*"; other components are unchanged.
std::string collapsed(const std::string& component, bool last) {
  if (is_index(component)) return "*";
  const std::size_t low = component.rfind('_');
  if (!last && low != std::string::npos && is_index(component.substr(low + 1)))
    return component.substr(0, low + 1) + "*";
  return component;
}

bool says_nothing(const std::string& component) {
  static const std::set<std::string> words = {"*", "dense", "linear", "lin", "layer", "module", "fn"};
  return is_index(component) || words.contains(component);
}

std::string join(const std::vector<std::string>& comps, std::size_t from) {
  std::string s;
  for (std::size_t i = from; i < comps.size(); ++i) s += (i > from ? "." : "") + comps[i];
  return s;
}

// A name in the table: that of a tensor without its layer number and part.
struct Entry {
  std::vector<std::string> comps;
  std::string leaf;
  int row = -1;
  int order = 0;        // q, k, v are 0, 1, 2
  std::string pattern;  // the shortest suffix of comps that occurs in no other row
};

struct Row {
  RuleRow row;
  std::string leaf;
  std::vector<int> entries;
  bool merged = false;  // the paper's row (bias|scale)
};

using Spec = std::vector<std::optional<std::string>>;

Spec spec_of(ParamKind kind, int n_dims, int dim) {
  Spec spec;
  for (const int d : spec_dims(kind, n_dims))
    spec.push_back(d == dim ? std::optional<std::string>("mp") : std::nullopt);
  return spec;
}

void shorten(std::vector<Entry>& entries) {
  std::unordered_map<std::string, int> row_of_end;  // -1: occurs in several rows
  const auto key = [](const Entry& e, std::size_t from) { return join(e.comps, from) + "\n" + e.leaf; };
  for (const Entry& e : entries)
    for (std::size_t from = 0; from < e.comps.size(); ++from) {
      const auto [it, fresh] = row_of_end.emplace(key(e, from), e.row);
      if (!fresh && it->second != e.row) it->second = -1;
    }
  for (Entry& e : entries) {
    std::size_t from = e.comps.size() - 1;
    const auto all_empty = [&] {
      return std::all_of(e.comps.begin() + static_cast<std::ptrdiff_t>(from), e.comps.end(), says_nothing);
    };
    while (from > 0 && (says_nothing(e.comps[from]) || all_empty() || row_of_end[key(e, from)] < 0)) --from;
    e.pattern = join(e.comps, from);
  }
}

std::string pattern_of(const Row& row, const std::vector<Entry>& entries) {
  if (row.merged) return "(bias|scale)";
  std::vector<const Entry*> sorted;
  for (const int e : row.entries) sorted.push_back(&entries[e]);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Entry* a, const Entry* b) { return a->order < b->order; });
  std::vector<std::string> names;
  for (const Entry* e : sorted)
    if (std::find(names.begin(), names.end(), e->pattern) == names.end()) names.push_back(e->pattern);
  const std::string tail = row.leaf.empty() ? "" : "." + row.leaf;
  if (names.size() == 1) return names[0] + tail;
  return fmt::format("({}){}", fmt::join(names, "|"), tail);
}

}  // namespace

std::vector<RuleRow> make_rules_table(const std::vector<ParamInfo>& params,
                                      const std::vector<ParamName>& names, const std::vector<RoleInfo>& roles,
                                      std::vector<ShardingRule>& rules) {
  const bool merge = std::any_of(params.begin(), params.end(), [&](const ParamInfo& p) {
    const std::size_t i = static_cast<std::size_t>(&p - params.data());
    return is_replicated_vector_rule(rules[i].rule) && is_bias_leaf(names[i].leaf);
  });
  std::vector<Row> rows;
  std::map<std::tuple<int, std::string, std::string, std::string>, int> row_at;  // place, rule, spec, leaf
  std::vector<int> row_of(params.size());
  for (std::size_t i = 0; i < params.size(); ++i) {
    const bool merged = merge && is_replicated_vector_rule(rules[i].rule);
    const int n_dims = static_cast<int>(params[i].shape.size());
    const Spec spec = merged ? Spec{std::nullopt} : spec_of(roles[i].kind, n_dims, rules[i].dim);
    // Leaves joined by '_' (`in_proj_weight`) are shown as in the file.
    const std::string leaf = merged ? "" : names[i].leaf;
    const std::string kind = merged ? std::string(rule::kNorm) : rules[i].rule;
    const auto [it, fresh] = row_at.emplace(std::tuple{place_of(kind), kind, format_spec(spec), leaf},
                                            static_cast<int>(rows.size()));
    if (fresh) rows.push_back({{{}, spec, kind, 0, kind == rule::kColumnBias}, leaf, {}, merged});
    row_of[i] = it->second;
    RuleRow& row = rows[it->second].row;
    ++row.tensors;
    if (merged && rules[i].rule != rule::kNorm && row.rule.find(rules[i].rule) == std::string::npos)
      row.rule += std::string("; ") + rules[i].rule;
  }

  // A name whose layers are in several rows keeps its layer numbers.
  const auto short_name = [&](std::size_t i) {
    std::vector<std::string> comps = names[i].comps;
    for (std::size_t c = 0; c < comps.size(); ++c) comps[c] = collapsed(comps[c], c + 1 == comps.size());
    return comps;
  };
  std::unordered_map<std::string, int> row_of_name;
  for (std::size_t i = 0; i < params.size(); ++i) {
    const auto [it, fresh] = row_of_name.emplace(join(short_name(i), 0) + "\n" + names[i].leaf, row_of[i]);
    if (!fresh && it->second != row_of[i]) it->second = -1;
  }
  std::vector<Entry> entries;
  std::unordered_map<std::string, int> entry_at;
  for (std::size_t i = 0; i < params.size(); ++i) {
    Row& row = rows[row_of[i]];
    std::vector<std::string> comps = short_name(i);
    if (row_of_name[join(comps, 0) + "\n" + names[i].leaf] < 0) {
      comps = names[i].comps;
      if (!names[i].part.empty()) comps.back() += "[" + names[i].part + "]";
    }
    const auto [it, fresh] =
        entry_at.emplace(join(comps, 0) + "\n" + names[i].leaf + "\n" + std::to_string(row_of[i]),
                         static_cast<int>(entries.size()));
    if (!fresh) continue;
    entries.push_back({std::move(comps), names[i].leaf, row_of[i], roles[i].order, {}});
    row.entries.push_back(it->second);
  }
  shorten(entries);

  for (Row& r : rows) r.row.pattern = pattern_of(r, entries);
  for (std::size_t i = 0; i < params.size(); ++i) rules[i].pattern = rows[row_of[i]].row.pattern;
  std::vector<int> order;
  for (const auto& [key, r] : row_at) order.push_back(r);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    const auto place = [&](int r) { return place_of(rows[r].merged ? rule::kNorm : rows[r].row.rule); };
    return place(a) != place(b) ? place(a) < place(b) : a < b;  // then in order of definition
  });
  std::vector<RuleRow> table;
  for (const int r : order) table.push_back(std::move(rows[r].row));
  return table;
}

std::string format_spec(const std::vector<std::optional<std::string>>& spec) {
  if (spec.size() <= 1 && (spec.empty() || !spec[0])) return "None";
  std::string s = "(";
  for (std::size_t i = 0; i < spec.size(); ++i) s += (i ? ", " : "") + spec[i].value_or("None");
  return s + ")";
}

std::string format_rules_table(const std::vector<RuleRow>& rows) {
  std::size_t pattern = 7, spec = 4, rule = 4;
  for (const RuleRow& r : rows) {
    if (r.below_bias_row) continue;
    pattern = std::max(pattern, r.pattern.size());
    spec = std::max(spec, format_spec(r.spec).size());
    rule = std::max(rule, r.rule.size());
  }
  std::string text =
      fmt::format("{:<{}}  {:<{}}  {:<{}}  {}\n", "pattern", pattern, "spec", spec, "rule", rule, "tensors");
  for (const RuleRow& r : rows)
    if (!r.below_bias_row)
      text += fmt::format("{:<{}}  {:<{}}  {:<{}}  {:>7}\n", r.pattern, pattern, format_spec(r.spec), spec,
                          r.rule, rule, r.tensors);
  for (const RuleRow& r : rows)
    if (r.below_bias_row)
      text += fmt::format("of the biases, redco splits with their column: {} {} ({})\n", r.pattern,
                          format_spec(r.spec), counted(r.tensors, "tensor"));
  return text;
}

}  // namespace redco

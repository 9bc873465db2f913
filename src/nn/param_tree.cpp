#include "nn/param_tree.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/words.h"
#include "ops/create.h"
#include "ops/redistribute.h"

namespace redco {

std::string StoredAs::tensor(i64 i) const {
  if (stacked == 0 || whole_stack) return name;
  const size_t at = name.find("{}");
  return name.substr(0, at) + std::to_string(i) + name.substr(at + 2);
}

namespace {

// Adds the sharding rule of an adapter's matrix and its row of the table.
void add_adapter_rule(const ParamSpec& s, const Placement& p, size_t at, Sharding& sharding) {
  const std::string pattern = s.adapter.dim == 0 ? "lora_B.weight" : "lora_A.weight";
  const ShardingRule rule{p.is_sharded() ? p.dim : -1, "cut with its layer", pattern};
  std::vector<std::optional<std::string>> spec;
  for (const int d : spec_dims(s.kind, 2))
    spec.push_back(d == rule.dim ? std::optional<std::string>("mp") : std::nullopt);
  sharding.rules[at] = rule;
  for (RuleRow& row : sharding.rows)
    if (row.rule == rule.rule && row.pattern == pattern && row.spec == spec) {
      ++row.tensors;
      return;
    }
  sharding.rows.push_back({pattern, spec, rule.rule, 1});
}

// The largest groups of a model's linear layers and embeddings.
struct Groups {
  i64 heads = 1;  // along dims of heads: a layer that reads heads has its groups there
  i64 other = 1;
};
Groups groups_of(const std::vector<ParamSpec>& specs, DType weights) {
  Groups g;
  bool reads_heads = false;
  for (const ParamSpec& s : specs) {
    const i64 group = group_of(ParamStorage{.weights = weights}.type_of(s));
    const bool of_heads = s.kind == ParamKind::linear && s.heads.dim >= 0 &&
                          s.heads.dim == static_cast<int>(s.shape.size()) - 1;
    i64& most = of_heads ? g.heads : g.other;
    most = std::max(most, group);
    reads_heads = reads_heads || of_heads;
  }
  if (!reads_heads) g.heads = g.other;
  return g;
}

// How many elements of dim d are never separated: heads that belong together, in multiples of the group.
i64 unit_of(const ParamSpec& s, int d, int shards, const Groups& groups) {
  const HeadsOf& h = s.heads;
  if (d == h.dim) {
    const i64 group = s.precise ? 1 : groups.heads;
    const i64 per_kv = h.n_head / (h.n_kv * kv_repeat(h.n_head, h.n_kv, shards)) * h.head_dim;
    const i64 times = std::lcm(per_kv, group) / per_kv;
    return times * (h.kv ? h.head_dim : per_kv);
  }
  const int rank = static_cast<int>(s.shape.size());
  const bool of_linear =
      (s.kind == ParamKind::linear && d >= rank - 2) || (s.kind == ParamKind::bias && d == rank - 1);
  const bool columns = s.kind == ParamKind::embedding && d == rank - 1;
  return (of_linear || columns) && !s.precise ? groups.other : 1;
}

std::optional<Role> role_of(const ParamSpec& s) {
  if (s.role || s.kind != ParamKind::linear || s.heads.dim < 0) return s.role;
  return s.heads.dim == 0 ? Role::attention_in : Role::attention_out;
}

// The parameters of one model.
ShardedSpecs shard_model(const std::vector<ParamSpec>& specs, int shards,
                         const std::vector<CustomRule>& custom, DType weights) {
  const Groups group = groups_of(specs, weights);
  std::vector<ParamInfo> infos;
  const bool declared = std::ranges::any_of(specs, [](const ParamSpec& s) { return s.role.has_value(); });
  std::map<std::string, size_t> place;  // name -> index among all parameters, for all but adapters
  std::vector<size_t> own;              // indices of these parameters
  for (size_t i = 0; i < specs.size(); ++i) {
    const ParamSpec& s = specs[i];
    if (!s.adapter.weight.empty()) continue;
    place[s.name] = i;
    own.push_back(i);
    ParamInfo info{.name = s.name, .shape = s.shape, .kind = s.kind};
    if (declared) info.role = role_of(s);
    info.cut = s.cut;
    if (s.heads.dim >= 0) info.order = s.kind == ParamKind::linear && s.heads.kv ? 1 : 0;
    info.max_pieces = s.shape;
    for (int d = 0; d < static_cast<int>(s.shape.size()); ++d)
      info.max_pieces[d] = ceil_div(s.shape[d], unit_of(s, d, shards, group));
    // Key/value weights that must be repeated are not cut: each rank creates its own repeated slice.
    if (const HeadsOf& h = s.heads; h.kv && kv_repeat(h.n_head, h.n_kv, shards) > 1)
      info.max_pieces[h.dim] = 1;
    infos.push_back(std::move(info));
  }
  ShardedSpecs out;
  out.sharding = shard_parameters(infos, shards, custom);
  out.layouts.resize(specs.size());
  if (own.size() < specs.size()) {
    std::vector<ShardingRule> rules(specs.size());
    std::vector<ParamKind> kinds(specs.size(), ParamKind::linear);
    for (size_t k = 0; k < own.size(); ++k) {
      rules[own[k]] = std::move(out.sharding.rules[k]);
      kinds[own[k]] = out.sharding.kinds[k];
    }
    out.sharding.rules = std::move(rules);
    out.sharding.kinds = std::move(kinds);
  }
  for (size_t i : own) {
    const int dim = out.sharding.rules[i].dim;
    if (dim >= 0) out.layouts[i][Axis::mp] = Placement::sharded(dim, unit_of(specs[i], dim, shards, group));
  }
  for (size_t i = 0; i < specs.size(); ++i) {
    const AdapterOf& a = specs[i].adapter;
    if (a.weight.empty()) continue;
    const Placement& base = out.layouts[place.at(a.weight)][Axis::mp];
    if (base.is_sharded(a.dim)) out.layouts[i][Axis::mp] = base;
    add_adapter_rule(specs[i], out.layouts[i][Axis::mp], i, out.sharding);
  }
  return out;
}

std::string without_prefix(const std::string& name, const std::string& owner) {
  return name.starts_with(owner + "/") ? name.substr(owner.size() + 1) : name;
}

// The spec with the names that it has in its owner's files.
ParamSpec named_by_owner(ParamSpec s) {
  for (std::string* name : {&s.name, &s.stored.name, &s.stored.joined, &s.adapter.weight})
    *name = without_prefix(*name, s.owner);
  return s;
}

// A pipeline's own parameters are sharded together with the model's.
std::string sharded_with(const ParamSpec& s) { return s.owner == kExtra ? "" : s.owner; }

}  // namespace

ShardedSpecs shard_specs(const std::vector<ParamSpec>& specs, int shards,
                         const std::vector<CustomRule>& custom, DType weights) {
  std::vector<std::string> owners;
  for (const ParamSpec& s : specs)
    if (std::ranges::find(owners, sharded_with(s)) == owners.end()) owners.push_back(sharded_with(s));
  if (owners.size() <= 1 && (owners.empty() || owners[0].empty()) &&
      std::ranges::all_of(custom, [](const CustomRule& r) { return r.of.empty(); }))
    return shard_model(specs, shards, custom, weights);
  ShardedSpecs out;
  out.layouts.resize(specs.size());
  out.sharding.rules.resize(specs.size());
  out.sharding.kinds.resize(specs.size());
  for (const std::string& owner : owners) {
    std::vector<ParamSpec> own;
    std::vector<size_t> places;
    for (size_t i = 0; i < specs.size(); ++i)
      if (sharded_with(specs[i]) == owner) {
        own.push_back(named_by_owner(specs[i]));
        places.push_back(i);
      }
    std::vector<CustomRule> rules;
    for (const CustomRule& r : custom)
      if (r.of == owner) rules.push_back(r);
    ShardedSpecs part = shard_model(own, shards, rules, weights);
    for (size_t k = 0; k < places.size(); ++k) {
      out.layouts[places[k]] = part.layouts[k];
      out.sharding.rules[places[k]] = std::move(part.sharding.rules[k]);
      out.sharding.kinds[places[k]] = part.sharding.kinds[k];
    }
    const std::string prefix = owner.empty() ? "" : owner + "/";
    for (RuleRow& row : part.sharding.rows) {
      row.pattern = prefix + row.pattern;
      out.sharding.rows.push_back(std::move(row));
    }
    for (const std::string& w : part.sharding.warnings)
      out.sharding.warnings.push_back(owner.empty() ? w : fmt::format("models.{}: {}", owner, w));
  }
  return out;
}

ParamTree::ParamTree(std::vector<ParamSpec> specs, std::map<std::string, std::string> aliases)
    : values_(specs.size()) {
  auto index = std::make_shared<std::unordered_map<std::string, size_t>>();
  for (size_t i = 0; i < specs.size(); ++i)
    REDCO_CHECK(index->emplace(specs[i].name, i).second, "parameter {} is declared twice", specs[i].name);
  for (const auto& [alias, name] : aliases) (*index)[alias] = index->at(name);
  any_adapters_ = std::ranges::any_of(specs, [](const ParamSpec& s) { return !s.adapter.weight.empty(); });
  specs_ = std::make_shared<const std::vector<ParamSpec>>(std::move(specs));
  index_ = std::move(index);
}

const ParamSpec* ParamTree::find_spec(const std::string& name) const {
  auto it = index_->find(name);
  return it == index_->end() ? nullptr : &(*specs_)[it->second];
}
const Tensor& ParamTree::operator[](const std::string& name) const {
  auto it = index_->find(name);
  if (it == index_->end()) {
    std::vector<std::string> names;
    for (const auto& [known, i] : *index_) names.push_back(known);
    std::ranges::sort(names);
    std::string near = nearest(name, names);
    for (const std::string& known : names)  // an embedding's name has no ".weight" unless it was given
      if (near.empty() && name.starts_with(known + ".")) near = known;
    REDCO_CHECK(false, "no parameter is named '{}'{}", name,
                near.empty() ? "" : fmt::format("; did you mean '{}'?", near));
  }
  return values_[it->second];
}
bool ParamTree::has(const std::string& name) const { return index_->count(name) > 0; }
Tensor ParamTree::find(const std::string& name) const {
  auto it = index_->find(name);
  return it == index_->end() ? Tensor() : values_[it->second];
}
void ParamTree::set(const std::string& name, Tensor value) { values_[index_->at(name)] = std::move(value); }

ParamTree ParamTree::with_values(std::vector<Tensor> values) const {
  REDCO_CHECK(values.size() == values_.size(), "{} values for {} parameters", values.size(), values_.size());
  ParamTree t = *this;
  t.values_ = std::move(values);
  return t;
}

ParamTree ParamTree::watched() const {
  ParamTree t = *this;
  for (size_t i = 0; i < t.values_.size(); ++i)
    if ((*specs_)[i].trained()) t.values_[i] = t.values_[i].watched();
  return t;
}

ParamTree ParamTree::subset(const std::vector<bool>& selected) const {
  REDCO_CHECK(selected.size() == values_.size(), "{} flags for {} parameters", selected.size(),
              values_.size());
  std::vector<ParamSpec> specs;
  std::vector<Tensor> values;
  for (size_t i = 0; i < selected.size(); ++i)
    if (selected[i]) {
      specs.push_back((*specs_)[i]);
      values.push_back(values_[i]);
    }
  std::map<std::string, std::string> kept;
  for (const auto& [alias, name] : aliases())
    if (selected[index_->at(name)]) kept[alias] = name;
  ParamTree t(std::move(specs), kept);
  t.values_ = std::move(values);
  return t;
}

std::map<std::string, std::string> ParamTree::aliases() const {
  std::map<std::string, std::string> out;
  for (const auto& [name, i] : *index_)
    if (name != (*specs_)[i].name) out[name] = (*specs_)[i].name;
  return out;
}

bool ParamTree::has_part(const std::string& owner) const {
  return std::ranges::any_of(*specs_, [&](const ParamSpec& s) { return s.owner == owner; });
}

ParamTree ParamTree::part(const std::string& owner) const {
  if (!owner.empty() && !has_part(owner)) {
    std::set<std::string> owners;
    for (const ParamSpec& s : *specs_)
      if (!s.owner.empty()) owners.insert(s.owner);
    const std::string near = nearest(owner, {owners.begin(), owners.end()});
    REDCO_CHECK(false, "part(\"{}\"): no parameters have this owner; expected {}{}", owner,
                owners.empty() ? "a name of the job's section models:, and the job has none"
                               : fmt::format("one of {}", fmt::join(owners, ", ")),
                near.empty() ? "" : fmt::format("; did you mean {}?", near));
  }
  if (std::ranges::all_of(*specs_, [&](const ParamSpec& s) { return s.owner == owner; }) && owner.empty())
    return *this;
  std::vector<ParamSpec> specs;
  std::vector<Tensor> values;
  std::map<std::string, std::string> kept;
  for (size_t i = 0; i < values_.size(); ++i) {
    if ((*specs_)[i].owner != owner) continue;
    specs.push_back(named_by_owner((*specs_)[i]));
    specs.back().owner.clear();
    values.push_back(values_[i]);
  }
  for (const auto& [alias, name] : aliases())
    if ((*specs_)[index_->at(name)].owner == owner)
      kept[without_prefix(alias, owner)] = without_prefix(name, owner);
  ParamTree t(std::move(specs), kept);
  t.values_ = std::move(values);
  return t;
}

bool ParamTree::has_adapters() const {
  return std::ranges::any_of(*specs_,
                             [](const ParamSpec& s) { return s.owner.empty() && !s.adapter.weight.empty(); });
}

ParamTree ParamTree::without_adapters() const {
  std::vector<bool> kept;
  for (const ParamSpec& s : *specs_) {
    kept.push_back(s.adapter.weight.empty());
    if (s.owner.empty() && kept.back() && s.trained())
      throw UsageError(
          "[lora] without_adapters(): {} is trained as a whole, so the model before the training is not kept. "
          "Train adapters alone (train.lora.rank, no modules_to_save), or give a second model in models:",
          s.name);
  }
  return subset(kept);
}

void ModelParams::add(const std::string& owner, const ModelParams& others, bool frozen,
                      std::optional<DType> storage) {
  const std::string prefix = owner + "/";
  for (const ParamSpec& other : others.specs) {
    ParamSpec& s = specs.emplace_back(other);
    for (std::string* name : {&s.name, &s.stored.name, &s.stored.joined, &s.adapter.weight})
      if (!name->empty()) *name = prefix + *name;
    s.owner = owner;
    s.frozen = s.frozen || frozen;
    if (storage && !s.storage) s.storage = storage;
  }
  for (const auto& [alias, name] : others.aliases) aliases[prefix + alias] = prefix + name;
}

ParamTree ParamTree::gathered() const {
  ParamTree t = *this;
  for (Tensor& value : t.values_) value = redco::gathered(value);
  return t;
}

ParamTree ParamTree::join(const std::vector<ParamTree>& trees) {
  if (trees.size() == 1) return trees[0];
  std::vector<ParamSpec> specs;
  std::vector<Tensor> values;
  std::map<std::string, std::string> aliases;
  for (const ParamTree& t : trees) {
    specs.insert(specs.end(), t.specs().begin(), t.specs().end());
    values.insert(values.end(), t.values().begin(), t.values().end());
    aliases.merge(t.aliases());
  }
  ParamTree all(std::move(specs), aliases);
  all.values_ = std::move(values);
  return all;
}

DType ParamStorage::type_of(const ParamSpec& s) const {
  const bool matrix = (s.kind == ParamKind::linear && s.shape.size() >= 2) ||
                      (s.kind == ParamKind::embedding && s.shape.size() == 2);
  const bool other = s.buffer || s.precise || !s.adapter.weight.empty() || (trains && s.trained());
  return matrix && !other ? s.storage.value_or(weights) : DType::f32;
}

ParamTree make_params(const ModelParams& params, const std::vector<Layout>& layouts,
                      const ParamStorage& storage) {
  ParamTree tree(params.specs, params.aliases);
  for (size_t i = 0; i < params.specs.size(); ++i) {
    const ParamSpec& s = params.specs[i];
    const DType type = storage.type_of(s);
    for (const Placement& p : layouts[i].on)
      REDCO_CHECK(!p.is_sharded(static_cast<int>(s.shape.size()) - 1) || p.unit % group_of(type) == 0,
                  "{}: {} cuts groups of {}", s.name, to_string(p), name_of(type));
    tree.values()[i] = parameter(s.shape, type, layouts[i], storage.sharding);
  }
  return tree;
}

}  // namespace redco

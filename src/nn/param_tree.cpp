#include "nn/param_tree.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/words.h"
#include "ops/create.h"
#include "ops/redistribute.h"

namespace redco {

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

// How many elements of dim d are never separated: heads that belong together, in multiples of the group.
i64 unit_of(const ParamSpec& s, int d, int shards, i64 group) {
  const HeadsOf& h = s.heads;
  if (s.precise) group = 1;
  if (d == h.dim) {
    const i64 per_kv = h.n_head / (h.n_kv * kv_repeat(h.n_head, h.n_kv, shards)) * h.head_dim;
    const i64 times = std::lcm(per_kv, group) / per_kv;
    return times * (h.kv ? h.head_dim : per_kv);
  }
  const int rank = static_cast<int>(s.shape.size());
  const bool of_linear =
      (s.kind == ParamKind::linear && d >= rank - 2) || (s.kind == ParamKind::bias && d == rank - 1);
  const bool columns = s.kind == ParamKind::embedding && d == rank - 1;
  return of_linear || columns ? group : 1;
}

}  // namespace

std::string StoredAs::tensor(i64 i) const {
  const size_t at = name.find("{}");
  if (stacked == 0 || at == name.npos) return name;
  return name.substr(0, at) + std::to_string(i) + name.substr(at + 2);
}

namespace {

std::optional<Role> role_of(const ParamSpec& s) {
  if (s.role || s.kind != ParamKind::linear || s.heads.dim < 0) return s.role;
  return s.heads.dim == 0 ? Role::attention_in : Role::attention_out;
}

}  // namespace

namespace {

// The parameters of one model.
ShardedSpecs shard_model(const std::vector<ParamSpec>& specs, int shards,
                         const std::vector<CustomRule>& custom, DType weights) {
  const i64 group = group_of(weights);
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
    ShardedSpecs part = shard_model(own, shards, rules, own[0].storage.value_or(weights));
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
    if (storage) s.storage = storage;
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

namespace {

// Every rank makes the whole value and keeps its part.
void fill_whole(const Tensor& t, const std::vector<double>& values) {
  const std::vector<float> v(values.begin(), values.end());
  Context::current().run(&Kernels::copy, from_values(t.shape(), std::span<const float>(v), t.layout()), t);
}

// x with softplus(x) = low (high / low)^u for uniform u.
void fill_time_step(const Tensor& t, u64 key, double low, double high) {
  std::vector<double> v = to_values(random_uniform(t.shape(), key, {}));
  for (double& x : v) {
    const double step = low * std::pow(high / low, x);
    x = step + std::log(-std::expm1(-step));
  }
  fill_whole(t, v);
}

void fill_log_count(const Tensor& t) {
  std::vector<double> v(static_cast<size_t>(t.numel()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = std::log(static_cast<double>(i + 1));
  fill_whole(t, v);
}

// Fills t with vectors of `width` normal numbers, where each group of `width` vectors is made orthogonal
// without changing their lengths. Length and direction of a normal vector are independent, so each vector is
// still normally distributed.
void fill_orthogonal(const Tensor& t, u64 key, i64 width) {
  std::vector<double> v = to_values(random_normal(t.shape(), key, {}));
  const auto dot = [&](const double* a, const double* b) { return std::inner_product(a, a + width, b, 0.0); };
  for (i64 row = 0; row * width < numel(t.shape()); ++row) {
    double* x = v.data() + row * width;
    const double length = std::sqrt(dot(x, x));
    // Twice, because the second pass removes what rounding leaves in the first.
    for (int pass = 0; pass < 2; ++pass)
      for (i64 other = row / width * width; other < row; ++other) {
        const double* y = v.data() + other * width;
        const double share = dot(x, y) / dot(y, y);
        for (i64 i = 0; i < width; ++i) x[i] -= share * y[i];
      }
    const double left = std::sqrt(dot(x, x));
    for (i64 i = 0; i < width; ++i) x[i] *= length / left;
  }
  fill_whole(t, v);
}

}  // namespace

void initialize(const ParamSpec& s, const Tensor& t) {
  if (t.is_meta()) return;
  Context& c = Context::current();
  if (t.dtype() != DType::f32) {
    const Tensor wide(t.shape(), DType::f32, t.layout());
    initialize(s, wide);
    return c.run(&Kernels::cast, wide, t);
  }
  switch (s.init.kind) {
    case Init::Kind::normal: {
      Restore<SharedText> scope(c.random_scope, s.name);
      fill_normal(t, c.key("init"), s.init.std);
      const Range rows = t.range(0);
      if (s.init.zero_row < rows.begin || s.init.zero_row >= rows.end) break;
      c.run(&Kernels::fill, t.view().narrowed(0, s.init.zero_row - rows.begin, 1), 0);
      break;
    }
    case Init::Kind::uniform: {
      Restore<SharedText> scope(c.random_scope, s.name);
      fill_uniform(t, c.key("init"), s.init.std);
      break;
    }
    case Init::Kind::orthogonal: {
      Restore<SharedText> scope(c.random_scope, s.name);
      fill_orthogonal(t, c.key("init"), s.init.width);
      break;
    }
    case Init::Kind::time_step: {
      Restore<SharedText> scope(c.random_scope, s.name);
      fill_time_step(t, c.key("init"), s.init.low, s.init.high);
      break;
    }
    case Init::Kind::values: {
      const std::size_t n = s.init.values ? s.init.values->size() : 0;
      if (n != static_cast<std::size_t>(t.numel()))
        throw UsageError("[model] {} {} has {} initial values", s.name, to_string(s.shape), n);
      fill_whole(t, {s.init.values->begin(), s.init.values->end()});
      break;
    }
    case Init::Kind::copy:  // copy_initial_values() follows
      break;
    case Init::Kind::log_count:
      fill_log_count(t);
      break;
    case Init::Kind::constant:
      c.run(&Kernels::fill, t, s.init.std);
      break;
    case Init::Kind::ones:
      c.run(&Kernels::fill, t, 1);
      break;
    case Init::Kind::zeros:
      c.run(&Kernels::fill, t, 0);
      break;
  }
}

void copy_initial_values(ParamTree& tree, const std::vector<std::string>& made) {
  const auto copies = [&](const ParamSpec& s) {
    return s.init.kind == Init::Kind::copy && std::ranges::count(made, s.name) > 0;
  };
  for (std::size_t i = 0; i < tree.size(); ++i) {
    const ParamSpec& s = tree.specs()[i];
    if (!copies(s)) continue;
    const ParamSpec* source = tree.find_spec(s.init.source);
    for (std::size_t hops = 0; source && copies(*source) && hops < tree.size(); ++hops)
      source = tree.find_spec(source->init.source);
    if (!source || copies(*source) || source->shape != s.shape)
      throw UsageError("[pipeline] {} {} begins as a copy of '{}', which is {}", s.name, to_string(s.shape),
                       s.init.source,
                       source ? fmt::format("of shape {}", to_string(source->shape)) : "no parameter");
    const Tensor& to = tree.values()[i];
    if (to.is_meta()) continue;
    const Tensor from = redistribute(tree[source->name].detached(), to.layout());
    if (from.dtype() == to.dtype())
      Context::current().run(&Kernels::copy, from, to);
    else
      Context::current().run(&Kernels::cast, from, to);
  }
}

void initialize(ParamTree& tree, u64 seed) {
  Context& c = Context::current();
  Restore<RandomState> random(c.random, {.seed = seed, .step = -1, .row_offset = 0});
  for (size_t i = 0; i < tree.size(); ++i) initialize(tree.specs()[i], tree.values()[i]);
}

}  // namespace redco

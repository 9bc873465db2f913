#include "nn/param_tree.h"

#include "base/error.h"
#include "kernels/elementwise.h"
#include "ops/create.h"

namespace redco {

ShardedSpecs shard_specs(const std::vector<ParamSpec>& specs, int shards,
                         const std::vector<CustomRule>& custom) {
  std::vector<ParamInfo> infos;
  for (const ParamSpec& s : specs) {
    ParamInfo info{.name = s.name, .shape = s.shape, .kind = s.kind};
    if (s.heads.dim >= 0) {
      const HeadsOf& h = s.heads;
      info.max_pieces = s.shape;
      const i64 f = kv_repeat(h.n_head, h.n_kv, shards);
      // Key/value weights that must be repeated stay whole: each rank makes its own repeated slice.
      info.max_pieces[h.dim] = h.kv ? (f > 1 ? 1 : h.n_kv) : h.n_kv * f;
    }
    infos.push_back(std::move(info));
  }
  ShardedSpecs out;
  out.sharding = shard_parameters(infos, shards, custom);
  for (size_t i = 0; i < specs.size(); ++i) {
    Layout l;
    const int dim = out.sharding.rules[i].dim;
    if (dim >= 0) {
      const HeadsOf& h = specs[i].heads;
      i64 unit = 1;
      if (dim == h.dim)
        unit = h.kv ? h.head_dim : h.n_head / (h.n_kv * kv_repeat(h.n_head, h.n_kv, shards)) * h.head_dim;
      l[Axis::mp] = Placement::sharded(dim, unit);
    }
    out.layouts.push_back(l);
  }
  return out;
}

ParamTree::ParamTree(std::vector<ParamSpec> specs, std::map<std::string, std::string> aliases)
    : values_(specs.size()) {
  auto index = std::make_shared<std::map<std::string, size_t>>();
  for (size_t i = 0; i < specs.size(); ++i)
    REDCO_CHECK(index->emplace(specs[i].name, i).second, "parameter {} twice", specs[i].name);
  for (const auto& [alias, name] : aliases) (*index)[alias] = index->at(name);
  specs_ = std::make_shared<const std::vector<ParamSpec>>(std::move(specs));
  index_ = std::move(index);
}

const Tensor& ParamTree::operator[](const std::string& name) const {
  auto it = index_->find(name);
  REDCO_CHECK(it != index_->end(), "the model has no parameter {}", name);
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
  for (Tensor& v : t.values_) v = v.watched();
  return t;
}

ParamTree make_params(const ModelParams& params, const std::vector<Layout>& layouts) {
  ParamTree tree(params.specs, params.aliases);
  for (size_t i = 0; i < params.specs.size(); ++i)
    tree.values()[i] = Tensor(params.specs[i].shape, DType::f32, layouts[i]);
  return tree;
}

void initialize(ParamTree& tree, u64 seed) {
  Context& c = Context::current();
  Restore<RandomState> random(c.random, {.seed = seed, .step = -1, .row_offset = 0});
  for (size_t i = 0; i < tree.size(); ++i) {
    const ParamSpec& s = tree.specs()[i];
    Tensor& t = tree.values()[i];
    if (t.is_meta()) continue;
    float* p = t.mutable_data<float>();
    const i64 n = t.local_numel();
    if (s.init.kind == Init::Kind::normal) {
      Restore<std::string> scope(c.random_scope, s.name);
      fill_normal(t, c.key("init"), s.init.std);
    } else {
      kernels::fill<float>(p, s.init.kind == Init::Kind::ones ? 1.f : 0.f, n);
    }
  }
}

}  // namespace redco

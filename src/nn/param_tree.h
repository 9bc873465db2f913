// ParamSpec: what a model family says about one parameter. ParamTree: the parameters of a model, in order of
// definition.
//
// Names are Hugging Face's; parts of fused tensors are `name[q]`. Linear weights are (out, in) in memory; the
// StoredAs of a spec is the only place that knows how Hugging Face stores it (transposed, or as rows of a
// fused tensor).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "shard/layout.h"
#include "shard/rules.h"
#include "tensor/tensor.h"

namespace redco {

// Where a parameter lives in a Hugging Face file: rows [row, row + shape[0]) of the stored tensor brought to
// memory order.
struct StoredAs {
  std::string name;         // tensor's name in the file
  Shape shape;              // in the file
  bool transposed = false;  // 2-D, stored (in, out): GPT-2's Conv1D
  i64 row = 0;              // first row (of the out dim) of this part
  // > 0: dim 0 is made of this many tensors of `shape`, one an expert; {} in name stands for their numbers.
  i64 stacked = 0;
  // Where transformers computes with another tensor than it writes (experts in one): that one's name, and
  // which of its rows (of the out dim) these are.
  std::string joined{};
  i64 joined_row = 0, joined_rows = 0;

  i64 tensors() const { return stacked > 0 ? stacked : 1; }
  std::string tensor(i64 i) const;  // the i-th one's name
};

// A dim made of attention heads: cut in whole heads, or whole groups of query heads that share a key/value
// head.
struct HeadsOf {
  int dim = -1;  // -1: none
  i64 n_head = 0, n_kv = 0, head_dim = 0;
  bool kv = false;  // a key or value projection
};

struct Init {
  enum class Kind : std::uint8_t { zeros, ones, normal, uniform, constant, orthogonal } kind = Kind::zeros;
  double std = 0;     // normal; uniform: in [-std, std); the value of constant
  i64 zero_row = -1;  // normal: this row is zeros (an embedding's padding row); -1: none
  // orthogonal: vectors of so many numbers, each drawn as a standard normal one is, and `width` at a time
  // orthogonal to one another (the random features of Choromanski et al. 2021).
  i64 width = 0;
};

// A or B of a linear layer's low-rank adapter (nn/lora.h).
struct AdapterOf {
  std::string weight;  // the parameter that is adapted; "": this is no adapter
  int dim = -1;        // the dim that it shares with it: cut where that one is cut along it, else whole
  double scale = 1;    // of B A
  double dropout = 0;  // of A's input, in training
};

struct ParamSpec {
  std::string name;
  Shape shape;
  ParamKind kind = ParamKind::other;
  StoredAs stored;
  HeadsOf heads{};
  Init init{};
  // Stored with the model, never trained. A checkpoint may lack it: then it has its initial value.
  bool buffer = false;
  bool frozen = false;  // adapters are trained in its place
  AdapterOf adapter{};
  bool trained() const { return !buffer && !frozen; }
};

// Which dim of each parameter is cut over mp, and in which units. Adapters follow their layers; no rule is
// asked.
struct ShardedSpecs {
  std::vector<Layout> layouts;
  Sharding sharding;  // rules, table, warnings
};
// Throws UsageError where a custom rule isn't well formed.
ShardedSpecs shard_specs(const std::vector<ParamSpec>& specs, int n_model_shards,
                         const std::vector<CustomRule>& custom = {});

class ParamTree {
 public:
  ParamTree() = default;
  // The specs outlive the tree's copies (shared).
  ParamTree(std::vector<ParamSpec> specs, std::map<std::string, std::string> aliases);

  size_t size() const { return values_.size(); }
  const std::vector<ParamSpec>& specs() const { return *specs_; }
  const std::vector<Tensor>& values() const { return values_; }
  std::vector<Tensor>& values() { return values_; }

  // By name or alias (tied weights). Throws BugError for a name the family didn't declare.
  const Tensor& operator[](const std::string& name) const;
  bool has(const std::string& name) const;
  // The value, or an undefined tensor.
  Tensor find(const std::string& name) const;
  // The spec of a name or alias; null where there is none.
  const ParamSpec* find_spec(const std::string& name) const;
  void set(const std::string& name, Tensor value);

  // The same names with other values: watched leaves, fast weights, averages.
  ParamTree with_values(std::vector<Tensor> values) const;
  ParamTree watched() const;  // every value that is trained a new leaf of the tape
  // The same tensors of some of the parameters.
  ParamTree subset(const std::vector<bool>& selected) const;

 private:
  std::shared_ptr<const std::vector<ParamSpec>> specs_;
  std::shared_ptr<const std::map<std::string, size_t>> index_;
  std::vector<Tensor> values_;
};

// Names, tied weights and where the values are stored.
struct ModelParams {
  std::vector<ParamSpec> specs;
  std::map<std::string, std::string> aliases;  // lm_head.weight -> transformer.wte.weight
};

// A tree of uninitialized tensors with these layouts, in the current context.
ParamTree make_params(const ModelParams& params, const std::vector<Layout>& layouts);
// Random initial values: a function of (seed, name, element) alone, so the same on every mesh. Algorithm
// version kInitVersion.
constexpr int kInitVersion = 1;
void initialize(ParamTree& tree, u64 seed);
// One parameter, with the context's random state: a buffer that a checkpoint lacks.
void initialize(const ParamSpec& spec, const Tensor& value);

}  // namespace redco

// ParamSpec: the properties of one parameter, declared by the model family. ParamTree: the parameters of a
// model, in order of definition.
//
// Names are those of Hugging Face; parts of fused tensors are `name[q]`. Linear weights are (out, in) in
// memory. Only StoredAs describes how Hugging Face stores them (transposed, or as rows of a fused tensor).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "shard/layout.h"
#include "shard/rules.h"
#include "shard/state_sharding.h"
#include "tensor/tensor.h"

namespace redco {

// The place of a parameter in a Hugging Face file: rows of the stored tensor in memory order.
struct StoredAs {
  std::string name;         // name of the tensor in the file
  Shape shape;              // in the file
  bool transposed = false;  // 2-D and stored as (in, out): GPT-2's Conv1D
  i64 row = 0;              // first row (of the out dim) of this part
  // > 0: dim 0 consists of this many stored tensors of `shape`, one per expert; {} in `name` is the expert's
  // index.
  i64 stacked = 0;
  // The stack is one tensor of the file, of the shape (stacked, shape...).
  bool whole_stack = false;
  // If transformers computes with another tensor than it stores (all experts in one): the name of that
  // tensor, and which of its rows (of the out dim) these are.
  std::string joined{};
  i64 joined_row = 0, joined_rows = 0;
  // > 0: the rows come in blocks of this many (a head of a fused projection), `step` rows apart.
  i64 block = 0, step = 0;

  // The stored row of row r.
  i64 row_of(i64 r) const { return row + (block > 0 ? r / block * step + r % block : r); }
  i64 tensors() const { return stacked > 0 && !whole_stack ? stacked : 1; }
  // Of one tensor in the file.
  Shape file_shape() const {
    Shape s = shape;
    if (whole_stack) s.insert(s.begin(), stacked);
    return s;
  }
  std::string tensor(i64 i) const;  // the name of stored tensor i
};

// A dim that consists of heads (of an attention, or of a recurrence). It is cut into whole heads, or whole
// groups of query heads that share a key/value head.
struct HeadsOf {
  int dim = -1;  // -1: none
  i64 n_head = 0, n_kv = 0, head_dim = 0;
  bool kv = false;  // a key or value projection
};

struct Init {
  enum class Kind : std::uint8_t {
    zeros,
    ones,
    normal,
    uniform,
    constant,
    orthogonal,
    log_count,  // log(1), log(2), ... of a vector
    time_step,  // softplus gives log-uniform numbers in [low, high)
    values,     // these numbers
    copy,       // what `source` begins with: its stored weights, if it has some
  } kind = Kind::zeros;
  double std = 0;     // normal: standard deviation; uniform: in [-std, std); constant: the value
  i64 zero_row = -1;  // normal: index of a row of zeros (an embedding's padding row); -1: none
  // orthogonal: the length of the vectors. Each is drawn as a standard normal vector, and every group of
  // `width` vectors is orthogonal (the random features of Choromanski et al. 2021).
  i64 width = 0;
  double low = 0, high = 0;  // time_step
  std::shared_ptr<const std::vector<float>> values{};
  std::string source{};  // copy: a parameter of the same shape, declared in any order
};

// Matrix A or B of a linear layer's low-rank adapter (nn/lora.h).
struct AdapterOf {
  std::string weight;  // the adapted parameter; "": this is not an adapter
  // The dim that it shares with the weight: cut if the weight is cut along it, otherwise replicated.
  int dim = -1;
  double scale = 1;    // factor of B A
  double dropout = 0;  // of A's input, during training
};

struct ParamSpec {
  std::string name;
  Shape shape;
  ParamKind kind = ParamKind::other;
  StoredAs stored;
  HeadsOf heads{};
  // If a spec of the model has one, the roles of all matrices are declared: those with heads are the layers
  // of an attention, others without a role alternate. Otherwise roles are found (shard/rules.h).
  std::optional<Role> role{};
  // The dim that is cut over the model shards (-1: none), in units of `heads` if that is its dim. Decides in
  // place of role, name and shape.
  std::optional<int> cut{};
  Init init{};
  // Stored with the model, never trained. If a checkpoint lacks it, it gets its initial value.
  bool buffer = false;
  bool frozen = false;   // not trained (its adapters are)
  bool precise = false;  // always fp32 in memory (ParamStorage): small tables and routers
  AdapterOf adapter{};
  // The part of the job that the parameter belongs to: "" is the job's model (or a pipeline without a model),
  // kExtra the parameters that a pipeline has besides the model's, any other name a model of `models:`.
  std::string owner{};
  // Type of a matrix in memory; nullopt: that of ParamStorage. Blocks of a GGUF file keep theirs
  // (ckpt/stored_blocks.h).
  std::optional<DType> storage{};
  bool trained() const { return !buffer && !frozen; }
};
constexpr const char* kExtra = "extra";

// Which dim of each parameter is cut over mp, and in which units. Adapters follow their layers and need no
// rule.
struct ShardedSpecs {
  std::vector<Layout> layouts;
  Sharding sharding;  // rules, table, warnings
};
// weights: the type of ParamStorage. If matrices are grouped, linear layers are cut in multiples of the
// largest group along both dims, so that the output of one layer is cut like the weight of the next; layers
// with heads in multiples of the group of those that read heads. Each owner's parameters are sharded
// separately. Throws UsageError if a custom rule is malformed.
ShardedSpecs shard_specs(const std::vector<ParamSpec>& specs, int n_model_shards,
                         const std::vector<CustomRule>& custom = {}, DType weights = DType::f32);

class ParamTree {
 public:
  ParamTree() = default;
  // All copies of the tree share the specs.
  ParamTree(std::vector<ParamSpec> specs, std::map<std::string, std::string> aliases);

  size_t size() const { return values_.size(); }
  const std::vector<ParamSpec>& specs() const { return *specs_; }
  const std::vector<Tensor>& values() const { return values_; }
  std::vector<Tensor>& values() { return values_; }

  // By name or alias (tied weights). Throws BugError for a name that the family did not declare; it names the
  // nearest one.
  const Tensor& operator[](const std::string& name) const;
  bool has(const std::string& name) const;
  // The value, or an undefined tensor.
  Tensor find(const std::string& name) const;
  // The spec of a name or alias; null if there is none.
  const ParamSpec* find_spec(const std::string& name) const;
  void set(const std::string& name, Tensor value);

  // The same names with other values: watched leaves, fast weights, averages.
  ParamTree with_values(std::vector<Tensor> values) const;
  ParamTree watched() const;  // every trained value becomes a new leaf of the tape
  // The values that ops use, if they are sharded over the replicas (shard/state_sharding.h): all of them at
  // once, for work on one replica. Collective on the data axes.
  ParamTree gathered() const;
  // The same tensors, only for the selected parameters and their aliases.
  ParamTree subset(const std::vector<bool>& selected) const;
  // The parameters of one owner (ParamSpec::owner), by their own names: "reference/lm_head.weight" is
  // "lm_head.weight" in part("reference"). Throws BugError if an owner with a name has none; it lists those
  // that have.
  ParamTree part(const std::string& owner) const;
  bool has_part(const std::string& owner) const;
  bool has_adapters() const;                           // of the model: with LoRA
  bool any_adapters() const { return any_adapters_; }  // of any owner
  // The model without its adapters: with LoRA, the model that the training began with. UsageError if weights
  // of the model besides the adapters are trained (train.lora.modules_to_save), because their first values
  // are not kept.
  ParamTree without_adapters() const;
  // The parameters of all trees, which have different names.
  static ParamTree join(const std::vector<ParamTree>& trees);

 private:
  std::map<std::string, std::string> aliases() const;
  std::shared_ptr<const std::vector<ParamSpec>> specs_;
  std::shared_ptr<const std::unordered_map<std::string, size_t>> index_;  // of names and aliases
  std::vector<Tensor> values_;
  bool any_adapters_ = false;
};

// Names, tied weights and the stored form of each parameter.
struct ModelParams {
  std::vector<ParamSpec> specs;
  std::map<std::string, std::string> aliases;  // lm_head.weight -> transformer.wte.weight

  // Adds the parameters of a model of `models:`: all names get the prefix "owner/".
  void add(const std::string& owner, const ModelParams& others, bool frozen, std::optional<DType> storage);
};

// How the parameters of a tree are kept in memory.
struct ParamStorage {
  // StateSharding::parameters: each replica holds a part of their rows, and ops gather them.
  StateSharding sharding = StateSharding::none;
  // Type of the matrices of linear layers, experts and embeddings (f32 or a storage type). Other parameters,
  // adapters, tables of positions and routers are fp32.
  DType weights = DType::f32;
  // Parameters that are trained are fp32. (optim/master_weights.h may round them.)
  bool trains = false;
  DType type_of(const ParamSpec& spec) const;
  bool operator==(const ParamStorage&) const = default;
};

// A tree of uninitialized tensors with these layouts, in the current context.
ParamTree make_params(const ModelParams& params, const std::vector<Layout>& layouts,
                      const ParamStorage& storage = {});
// Sets random initial values. They depend only on (seed, name, element), so they are equal on every mesh.
// kInitVersion: version of the algorithm.
constexpr int kInitVersion = 1;
void initialize(ParamTree& tree, u64 seed);
// Sets those of the parameters `made` (names) that begin as copies (Init::Kind::copy), after all others have
// their values. UsageError: a source that is no parameter, or of another shape.
void copy_initial_values(ParamTree& tree, const std::vector<std::string>& made);
// Initializes one parameter with the context's random state: a buffer that a checkpoint lacks.
void initialize(const ParamSpec& spec, const Tensor& value);

}  // namespace redco

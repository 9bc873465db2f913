// Layers as functions of (parameters, prefix, activations). Written for one device: nothing here knows ranks
// or sizes. B batch, T tokens, C channels, H heads, D head width.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "nn/param_tree.h"
#include "ops/attention.h"

namespace redco {

// Keys and values of earlier tokens, per layer [B, max_length, H, D], placed as they arrive.
struct KvCache {
  i64 max_length = 0;
  i64 length = 0;  // tokens held; advanced once per apply, after the last layer
  struct Layer {
    Tensor k, v;
    Tensor cross_k, cross_v;  // of an encoder's output [B, S, H, D]; made at the first apply, then kept
  };
  std::vector<Layer> layers;
};

// What a forward pass is given beside parameters and ids.
struct ApplyOptions {
  bool train = false;               // dropout is on
  bool recompute_blocks = false;    // keep a block's input alone
  bool last_position_only = false;  // logits of the last token alone, [B, 1, V]
  bool segmented = false;  // key_mask holds sample numbers: attention stays inside a sample (no cache then)
  KvCache* cache = nullptr;
  std::vector<Tensor>* hidden_states = nullptr;  // filled as transformers does: embeddings, then each layer
};

// A linear layer: `prefix.weight` and, where it exists, `prefix.bias`; or a part of a fused one,
// `prefix.weight[part]`.
struct LayerName {
  std::string prefix, part;
  LayerName(std::string prefix, std::string part = "") : prefix(std::move(prefix)), part(std::move(part)) {}
  LayerName(const char* prefix) : prefix(prefix) {}
  std::string weight() const { return prefix + ".weight" + suffix(); }
  std::string bias() const { return prefix + ".bias" + suffix(); }

 private:
  std::string suffix() const { return part.empty() ? "" : "[" + part + "]"; }
};

// y = x W^T + b, and what the layer's adapter adds (nn/lora.h), whose dropout is on where o says training.
Tensor dense(const ParamTree& p, const LayerName& name, const Tensor& x, const ApplyOptions& o = {});
Tensor layer_norm(const ParamTree& p, const std::string& prefix, const Tensor& x, double eps);
Tensor rms_norm(const ParamTree& p, const std::string& prefix, const Tensor& x, double eps);
// Hugging Face's activation names (ACT2FN): gelu, gelu_new, relu, silu, ... Throws UsageError for others.
Tensor activate(const std::string& name, const Tensor& x);
bool is_activation(const std::string& name);
std::vector<std::string> activation_names();
// Dropout with a key of (seed, step, the current random scope, site); the identity unless o.train.
Tensor dropout(const ApplyOptions& o, const std::string& site, double rate, const Tensor& x);

// Query, key or value projection, as dense(); grouped key/value heads are repeated on the weight where the
// mesh asks for it, and query_weight tells where the query heads are cut. [B, T, C] -> [B, T, heads', D].
struct HeadGeometry {
  i64 n_head = 0, n_kv = 0, head_dim = 0;
};
Tensor project_heads(const ParamTree& p, const LayerName& name, const Tensor& x, const HeadGeometry& g,
                     bool kv, const Tensor& query_weight, const ApplyOptions& o, bool with_bias = true);

struct AttentionSettings {
  double scale = 1;
  bool causal = true;
  i64 window = 0;
  double dropout = 0;
  double softcap = 0;
};
// Self-attention over [B, T, H, D]: writes k, v to layer `layer` of the cache if there is one and attends to
// all it holds. bias [1, H, T, keys] is added to the scores; undefined: none.
Tensor attend(const ApplyOptions& o, const AttentionSettings& s, size_t layer, const Tensor& q,
              const Tensor& k, const Tensor& v, const Tensor& key_mask, const Tensor& bias = {});
// Attention of q [B, T, H, D] over an encoder's output: make() gives its keys and values [B, S, H, D]. A
// cache asks for them once. memory_mask [B, S] or undefined.
struct KeyValue {
  Tensor k, v;
};
Tensor cross_attend(const ApplyOptions& o, const AttentionSettings& s, size_t layer, const Tensor& q,
                    const std::function<KeyValue()>& make, const Tensor& memory_mask);

// The tokens whose logits are wanted: all, or the last.
Tensor head_input(const ApplyOptions& o, const Tensor& x);

// block(p, x); where o asks for it only its input is kept and the backward runs the block again, with a copy
// of the tree `p` (the same tensors). The block takes parameters from its argument: p itself may be a
// temporary, such as fast weights. Other tensors it captures by value. Sets the random scope to `name`.
using BlockFunction = std::function<Tensor(const ParamTree&, const Tensor&)>;
Tensor run_block(const ParamTree& p, const ApplyOptions& o, const std::string& name, const Tensor& x,
                 const BlockFunction& block);

}  // namespace redco

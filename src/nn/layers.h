// Layers as functions of (parameters, prefix, activations). Written for one device: this code does not use
// ranks or their number. B batch, T tokens, C channels, H heads, D head width.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nn/param_tree.h"
#include "ops/attention.h"
#include "ops/norm.h"

namespace redco {

class Activations;
class ModelCache;

// Options of a forward pass.
struct ApplyOptions {
  bool train = false;               // enables dropout
  bool recompute_blocks = false;    // keep only the input of each block
  bool last_position_only = false;  // compute only the logits of the last token, [B, 1, V]
  bool head = true;                 // if false, the result is what the head reads: Model::last_hidden_state()
  bool sequence_parallel = false;   // shards the residual stream over tokens; see residual()
  bool segmented = false;           // key_mask holds sample numbers: attention stays within a sample
  ModelCache* cache = nullptr;      // of earlier tokens (nn/cache.h)
  // Of self-attention in all layers, whatever the family has. causal=false: a sliding window reaches as many
  // tokens to both sides. attention_bias [1 or B, 1 or H, T, keys] is added to the scores; undefined: none.
  // Masks as biases: nn/attention_bias.h.
  std::optional<bool> causal{};
  Tensor attention_bias{};
  // What passes read and replace. Blocks are then not recomputed. Not for passes with a cache.
  std::shared_ptr<Activations> activations{};
  // Filled as in transformers: embeddings, then the output of each layer.
  std::vector<Tensor>* hidden_states = nullptr;
  // Filled with the logits of each mixture's router, [B, T, experts], in the order of the layers.
  std::vector<Tensor>* router_logits = nullptr;
};

// A linear layer: `prefix.weight` and, if it exists, `prefix.bias`; or a part of a fused layer,
// `prefix.weight[part]`.
struct LayerName {
  std::string prefix, part;
  LayerName(std::string prefix, std::string part = "") : prefix(std::move(prefix)), part(std::move(part)) {}
  LayerName(const char* prefix) : prefix(prefix) {}
  std::string weight() const { return parameter(".weight"); }
  std::string bias() const { return parameter(".bias"); }

 private:
  std::string parameter(const char* what) const {
    std::string s;
    s.reserve(prefix.size() + part.size() + 10);
    s += prefix;
    s += what;
    if (!part.empty()) s.append("[").append(part).append("]");
    return s;
  }
};

// y = x W^T + b, plus the output of the layer's adapter if it has one (nn/lora.h). o.train enables the
// adapter's dropout.
Tensor dense(const ParamTree& p, const LayerName& name, const Tensor& x, const ApplyOptions& o = {});
// Layers with the same input, in one product.
Tensors dense_layers(const ParamTree& p, const std::vector<LayerName>& names, const Tensor& x,
                     const ApplyOptions& o = {});
Tensor layer_norm(const ParamTree& p, const std::string& prefix, const Tensor& x, double eps,
                  NormResult result = NormResult::computed);
Tensor rms_norm(const ParamTree& p, const std::string& prefix, const Tensor& x, double eps);
// Activation by its Hugging Face name (ACT2FN): gelu, gelu_new, relu, silu, ... Throws UsageError for other
// names.
Tensor activate(const std::string& name, const Tensor& x);
// activate(name, gate) * up
Tensor activate_gated(const std::string& name, const Tensor& gate, const Tensor& up);
bool is_activation(const std::string& name);
std::vector<std::string> activation_names();
// Dropout with the key (seed, step, current random scope, site); the identity unless o.train.
Tensor dropout(const ApplyOptions& o, const std::string& site, double rate, const Tensor& x);

// Query, key and value projections of the same input, in one product, like dense(). Grouped key/value heads
// are repeated on the weight if the mesh requires it; query_weight gives the cut of the query heads. [B, T,
// C] -> [B, T, heads', D] of each.
struct HeadGeometry {
  i64 n_head = 0, n_kv = 0, head_dim = 0;
};
struct HeadProjection {
  LayerName name;
  bool kv = false;  // of keys or values
  bool with_bias = true;
};
// w [n_kv * width, ...] with each group of `width` rows repeated as key/value heads are on this mesh, cut
// like the query heads.
Tensor repeat_kv(const Tensor& w, i64 width, const HeadGeometry& g, const Tensor& query_weight);
Tensors project_heads(const ParamTree& p, const std::vector<HeadProjection>& projections, const Tensor& x,
                      const HeadGeometry& g, const Tensor& query_weight, const ApplyOptions& o);

struct AttentionSettings {
  double scale = 1;
  bool causal = true;
  i64 window = 0;
  double dropout = 0;
  double softcap = 0;
  i64 ahead = -1;                                      // see AttentionOptions
  std::shared_ptr<const std::vector<float>> slopes{};  // of ALiBi
};
// Self-attention over [B, T, H, D]. With a cache, it adds k and v to layer `layer` of the cache and attends
// to all tokens in it. bias [1, H, T, keys] is added to the scores; undefined: none. v undefined: the keys
// are the values too. sinks [1, H]: see attention() (ops/attention.h).
Tensor attend(const ApplyOptions& o, const AttentionSettings& s, size_t layer, const Tensor& q,
              const Tensor& k, const Tensor& v, const Tensor& key_mask, const Tensor& bias = {},
              const Tensor& sinks = {});
// Attention of q [B, T, H, D] over an encoder's output. make() returns keys and values [B, S, H, D]; with a
// cache it is called once. memory_mask: [B, S] or undefined.
struct KeyValue {
  Tensor k, v;
};
Tensor cross_attend(const ApplyOptions& o, const AttentionSettings& s, size_t layer, const Tensor& q,
                    const std::function<KeyValue()>& make, const Tensor& memory_mask);

// Sequence parallelism (Korthikanti et al. 2022). With o.sequence_parallel, the residual stream x [B, T, C]
// is sharded over its tokens on the model axes: a Partial is reduce-scattered in place of an all-reduce, and
// norms, dropout and sums work on each rank's tokens. Column-parallel layers need all tokens: gather_tokens()
// is an all-gather. The backward pass mirrors both. Otherwise, and with a cache, x is returned unchanged.
//
// A model calls residual() on what begins the stream (embeddings) and on what is added to it (the output of a
// row-parallel layer), before dropout and norms; and gather_tokens() on the input of its MLP and head.
// Attention gathers its input itself.
Tensor residual(const ApplyOptions& o, const Tensor& x);
Tensor gather_tokens(const ApplyOptions& o, const Tensor& x);

// The hidden states whose logits are computed: those of all tokens, or of the last one.
Tensor head_input(const ApplyOptions& o, const Tensor& x);
// The logits of head_input(o, x) by a linear layer, or without o.head the input itself.
Tensor lm_head(const ParamTree& p, const LayerName& name, const Tensor& x, const ApplyOptions& o);

// The value that a pass continues with after the activation `name`, or "layers.I" and `part` ("", ".mlp"):
// see nn/activations_by_name.h. x itself unless o.activations replace it.
Tensor activation(const ApplyOptions& o, const char* name, const Tensor& x);
Tensor activation(const ApplyOptions& o, i64 layer, const char* part, const Tensor& x);

// block(p, x). With recompute_blocks only its input is kept, and the backward runs the block again with a
// copy of the tree `p` (the same tensors). The block must take parameters from its argument, because p may be
// a temporary, such as fast weights, and must capture other tensors by value. Sets the random scope to
// `name`.
using BlockFunction = std::function<Tensor(const ParamTree&, const Tensor&)>;
Tensor run_block(const ParamTree& p, const ApplyOptions& o, const std::string& name, const Tensor& x,
                 const BlockFunction& block);
// The same for a block that returns several tensors: the stream, and what a loss needs of it.
using BlockWithResults = std::function<Tensors(const ParamTree&, const Tensor&)>;
Tensors run_block(const ParamTree& p, const ApplyOptions& o, const std::string& name, const Tensor& x,
                  const BlockWithResults& block);

}  // namespace redco

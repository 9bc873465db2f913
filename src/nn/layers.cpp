#include "nn/layers.h"

#include "autograd/grad.h"
#include "base/error.h"
#include "nn/activations.h"
#include "nn/lora.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/linear.h"
#include "ops/norm.h"
#include "ops/redistribute.h"
#include "ops/shape.h"

namespace redco {

Tensor dense(const ParamTree& p, const LayerName& name, const Tensor& x, const ApplyOptions& o) {
  return add_adapter(p, name, x, linear(x, p[name.weight()], p.find(name.bias())), o);
}

Tensor layer_norm(const ParamTree& p, const std::string& prefix, const Tensor& x, double eps) {
  return layer_norm(x, p.find(prefix + ".weight"), p.find(prefix + ".bias"), eps);
}

Tensor rms_norm(const ParamTree& p, const std::string& prefix, const Tensor& x, double eps) {
  return rms_norm(x, p[prefix + ".weight"], eps);
}

namespace {

// The names of ACT2FN in transformers; gelu_fast is the same function as gelu_new.
const std::map<std::string, Unary>& activations() {
  static const std::map<std::string, Unary> kNames = {{"gelu", Unary::gelu},
                                                      {"gelu_python", Unary::gelu},
                                                      {"gelu_new", Unary::gelu_tanh},
                                                      {"gelu_fast", Unary::gelu_tanh},
                                                      {"gelu_pytorch_tanh", Unary::gelu_tanh},
                                                      {"gelu_python_tanh", Unary::gelu_tanh},
                                                      {"gelu_accurate", Unary::gelu_tanh},
                                                      {"quick_gelu", Unary::gelu_quick},
                                                      {"relu", Unary::relu},
                                                      {"silu", Unary::silu},
                                                      {"swish", Unary::silu},
                                                      {"tanh", Unary::tanh},
                                                      {"sigmoid", Unary::sigmoid}};
  return kNames;
}

}  // namespace

std::optional<kernels::Unary> unary_activation(const std::string& name) {
  const auto it = activations().find(name);
  return it == activations().end() ? std::nullopt : std::optional(it->second);
}

bool is_activation(const std::string& name) {
  return name == "linear" || name == "relu2" || activations().count(name);
}

std::vector<std::string> activation_names() {
  std::vector<std::string> names;
  for (const auto& [name, op] : activations()) names.push_back(name);
  names.insert(names.end(), {"relu2", "linear"});
  return names;
}

Tensor activate(const std::string& name, const Tensor& x) {
  if (name == "linear") return x;
  if (name == "relu2") return square(relu(x));
  auto it = activations().find(name);
  if (it == activations().end()) throw UsageError("[model] unknown activation '{}'", name);
  return unary(it->second, x);
}

Tensor dropout(const ApplyOptions& o, const std::string& site, double rate, const Tensor& x) {
  if (!o.train || rate <= 0) return x;
  return dropout(x, rate, Context::current().key(site));
}

Tensor project_heads(const ParamTree& p, const LayerName& name, const Tensor& x, const HeadGeometry& g,
                     bool kv, const Tensor& query_weight, const ApplyOptions& o, bool with_bias) {
  const i64 f = kv ? head_repeats(g.n_head, g.n_kv) : 1;
  const auto repeated = [&](const Tensor& w) {
    return kv && w.defined() ? repeat_heads(w, g.head_dim, f, query_weight.used_layout()) : w;
  };
  const Tensor y =
      linear(x, repeated(p[name.weight()]), repeated(with_bias ? p.find(name.bias()) : Tensor()));
  return reshape(add_adapter(p, name, x, y, o, repeated),
                 {x.size(0), x.size(1), kv ? g.n_kv * f : g.n_head, g.head_dim});
}

namespace {

Tensor cache_like(const Tensor& x, i64 length) {
  Shape s = x.shape();
  s[1] = length;
  return zeros(s, x.dtype(), x.layout());
}

AttentionOptions attention_options(const ApplyOptions& o, const AttentionSettings& s, const char* site) {
  AttentionOptions a{.scale = s.scale, .softcap = s.softcap, .causal = s.causal, .window = s.window};
  if (o.train && s.dropout > 0) {
    a.dropout = s.dropout;
    a.dropout_key = Context::current().key(site);
  }
  return a;
}

}  // namespace

Tensor attend(const ApplyOptions& o, const AttentionSettings& s, size_t layer, const Tensor& q,
              const Tensor& k0, const Tensor& v0, const Tensor& key_mask, const Tensor& bias) {
  AttentionOptions a = attention_options(o, s, "attention");
  a.segmented = o.segmented;
  if (!o.cache) return attention(q, k0, v0, a, key_mask, bias);
  REDCO_CHECK(!o.segmented, "rows with several samples cannot use a cache");
  KvCache& cache = *o.cache;
  const Tensor k = without_partials(k0), v = without_partials(v0);
  if (cache.layers.size() <= layer) cache.layers.resize(layer + 1);
  KvCache::Layer& l = cache.layers[layer];
  if (!l.k.defined()) {
    l.k = cache_like(k, cache.max_length);
    l.v = cache_like(v, cache.max_length);
  }
  cache_write(l.k, k, cache.length);
  cache_write(l.v, v, cache.length);
  a.kv_length = cache.length + k.size(1);
  return attention(q, l.k, l.v, a, key_mask, bias);
}

Tensor cross_attend(const ApplyOptions& o, const AttentionSettings& s, size_t layer, const Tensor& q,
                    const std::function<KeyValue()>& make, const Tensor& memory_mask) {
  const AttentionOptions a = attention_options(o, s, "cross_attention");
  if (!o.cache) {
    const KeyValue m = make();
    return attention(q, m.k, m.v, a, memory_mask);
  }
  if (o.cache->layers.size() <= layer) o.cache->layers.resize(layer + 1);
  KvCache::Layer& l = o.cache->layers[layer];
  if (!l.cross_k.defined()) {
    const KeyValue m = make();
    l.cross_k = without_partials(m.k);
    l.cross_v = without_partials(m.v);
  }
  return attention(q, l.cross_k, l.cross_v, a, memory_mask);
}

Tensor head_input(const ApplyOptions& o, const Tensor& x) {
  return o.last_position_only ? narrow(x, 1, x.size(1) - 1, 1) : x;
}

Tensor run_block(const ParamTree& p, const ApplyOptions& o, const std::string& name, const Tensor& x,
                 const BlockFunction& block) {
  Restore<SharedText> scope(Context::current().random_scope, name);
  if (!o.recompute_blocks) return block(p, x);
  return recompute([p, block](const Tensor& h) { return block(p, h); }, x);
}

}  // namespace redco

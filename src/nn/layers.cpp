#include "nn/layers.h"

#include "autograd/grad.h"
#include "base/error.h"
#include "nn/activations.h"
#include "nn/activations_by_name.h"
#include "nn/cache.h"
#include "nn/lora.h"
#include "nn/random_scope.h"
#include "ops/activation_sharding.h"
#include "ops/elementwise.h"
#include "ops/linear.h"
#include "ops/norm.h"
#include "ops/shape.h"

namespace redco {

Tensor dense(const ParamTree& p, const LayerName& name, const Tensor& x, const ApplyOptions& o) {
  const Tensor &w = p[name.weight()], b = p.find(name.bias());
  return p.any_adapters() ? adapted_layers(p, {{name, w, b}}, x, o)[0] : linear(x, w, b);
}

Tensors dense_layers(const ParamTree& p, const std::vector<LayerName>& names, const Tensor& x,
                     const ApplyOptions& o) {
  std::vector<AdaptedLayer> layers;
  for (const LayerName& name : names) layers.push_back({name, p[name.weight()], p.find(name.bias())});
  return adapted_layers(p, layers, x, o);
}

Tensor layer_norm(const ParamTree& p, const std::string& prefix, const Tensor& x, double eps,
                  NormResult result) {
  return layer_norm(x, p.find(prefix + ".weight"), p.find(prefix + ".bias"), eps, result);
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

Tensor activate_gated(const std::string& name, const Tensor& gate, const Tensor& up) {
  if (const auto op = unary_activation(name)) return gated(*op, gate, up);
  return activate(name, gate) * up;
}

Tensor dropout(const ApplyOptions& o, const std::string& site, double rate, const Tensor& x) {
  if (!o.train || rate <= 0) return x;
  return dropout(x, rate, Context::current().key(site));
}

Tensor repeat_kv(const Tensor& w, i64 width, const HeadGeometry& g, const Tensor& query_weight) {
  const i64 f = head_repeats(g.n_head, g.n_kv);
  if (f == 1 || !w.defined()) return w;
  // Cut like the queries, of which several belong to one repeated head.
  Layout like = query_weight.used_layout();
  for (Placement& p : like.on)
    if (p.is_sharded(query_weight.hidden())) {
      p.unit = static_cast<i32>(ceil_div(p.unit, g.n_head / (g.n_kv * f)));
      if (width != g.head_dim) p.unit = static_cast<i32>(ceil_div(p.unit, g.head_dim) * width);
    }
  return repeat_heads(w, width, f, like);
}

Tensors project_heads(const ParamTree& p, const std::vector<HeadProjection>& projections, const Tensor& x,
                      const HeadGeometry& g, const Tensor& query_weight, const ApplyOptions& o) {
  const i64 f = head_repeats(g.n_head, g.n_kv);
  const auto repeated = [&](const Tensor& w) { return repeat_kv(w, g.head_dim, g, query_weight); };
  std::vector<AdaptedLayer> layers;
  for (const HeadProjection& h : projections) {
    const Tensor w = p[h.name.weight()], b = h.with_bias ? p.find(h.name.bias()) : Tensor();
    layers.push_back(h.kv ? AdaptedLayer{h.name, repeated(w), repeated(b), repeated}
                          : AdaptedLayer{h.name, w, b});
  }
  Tensors y = adapted_layers(p, layers, x, o);
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = reshape(y[i], {x.size(0), x.size(1), projections[i].kv ? g.n_kv * f : g.n_head, g.head_dim});
  return y;
}

namespace {

AttentionOptions attention_options(const ApplyOptions& o, const AttentionSettings& s, const char* site) {
  AttentionOptions a{.scale = s.scale,
                     .softcap = s.softcap,
                     .causal = s.causal,
                     .window = s.window,
                     .ahead = s.ahead,
                     .slopes = s.slopes};
  if (o.train && s.dropout > 0) {
    a.dropout = s.dropout;
    a.dropout_key = Context::current().key(site);
  }
  return a;
}

// The bias of a family and that of the options, for all heads of q [B, T, H, D]; undefined: none.
Tensor bias_of_all(const ApplyOptions& o, const Tensor& of_family, const Tensor& q) {
  const Tensor& own = o.attention_bias;
  if (!own.defined()) return of_family;
  REDCO_CHECK(own.visible() == 4, "attention_bias is {}; expected [1 or B, 1 or H, T, keys]", describe(own));
  if (of_family.defined()) return of_family + own;
  return own.size(1) == q.size(2) ? own
                                  : broadcast_to(own, {own.size(0), q.size(2), own.size(2), own.size(3)});
}

}  // namespace

Tensor attend(const ApplyOptions& o, const AttentionSettings& s, size_t layer, const Tensor& q,
              const Tensor& k, const Tensor& v, const Tensor& key_mask, const Tensor& bias,
              const Tensor& sinks) {
  AttentionOptions a = attention_options(o, s, "attention");
  a.segmented = o.segmented;
  if (o.causal) {
    if (s.causal && !*o.causal && s.window > 0) a.ahead = s.window - 1;
    a.causal = *o.causal;
  }
  const Tensor biases = bias_of_all(o, bias, q);
  const bool one = !v.defined();
  if (!o.cache) return attention(q, k, one ? k : v, a, key_mask, biases, sinks);
  LayerCache& cache = o.cache->layer(layer);
  cache.append(one ? Tensors{k} : Tensors{k, v}, k.size(1));
  const CacheView held = cache.read();
  a.kv_length = cache.length() - held.first;
  const auto of_held = [&](const Tensor& t, int dim) {
    return t.defined() && held.first > 0 ? narrow(t, dim, held.first, a.kv_length) : t;
  };
  return attention(q, held.entries[0], held.entries[one ? 0 : 1], a, of_held(key_mask, 1), of_held(biases, 3),
                   sinks);
}

Tensor cross_attend(const ApplyOptions& o, const AttentionSettings& s, size_t layer, const Tensor& q,
                    const std::function<KeyValue()>& make, const Tensor& memory_mask) {
  const AttentionOptions a = attention_options(o, s, "cross_attention");
  if (!o.cache) {
    const KeyValue m = make();
    return attention(q, m.k, m.v, a, memory_mask);
  }
  LayerCache& cache = o.cache->memory(layer);
  if (cache.read().entries.empty()) {
    const KeyValue m = make();
    cache.append({m.k, m.v}, m.k.size(1));
  }
  const Tensors held = cache.read().entries;
  return attention(q, held[0], held[1], a, memory_mask);
}

Tensor residual(const ApplyOptions& o, const Tensor& x) {
  return o.sequence_parallel && !o.cache ? shard_over_model(x, x.rank() - 2) : x;
}

Tensor gather_tokens(const ApplyOptions& o, const Tensor& x) {
  return o.sequence_parallel && !o.cache ? gather_over_model(x, x.rank() - 2) : x;
}

Tensor head_input(const ApplyOptions& o, const Tensor& x) {
  return o.last_position_only ? narrow(x, 1, x.size(1) - 1, 1) : x;
}

Tensor lm_head(const ParamTree& p, const LayerName& name, const Tensor& x, const ApplyOptions& o) {
  const Tensor h = head_input(o, x);
  return o.head ? dense(p, name, h, o) : h;
}

Tensor activation(const ApplyOptions& o, const char* name, const Tensor& x) {
  return o.activations ? o.activations->pass(name, x) : x;
}
Tensor activation(const ApplyOptions& o, i64 layer, const char* part, const Tensor& x) {
  return o.activations ? o.activations->pass(fmt::format("layers.{}{}", layer, part), x) : x;
}

Tensor run_block(const ParamTree& p, const ApplyOptions& o, const std::string& name, const Tensor& x,
                 const BlockFunction& block) {
  return run_block(p, o, name, x, BlockWithResults([block](const ParamTree& own, const Tensor& h) {
                     return Tensors{block(own, h)};
                   }))[0];
}

Tensors run_block(const ParamTree& p, const ApplyOptions& o, const std::string& name, const Tensor& x,
                  const BlockWithResults& block) {
  Restore<SharedText> scope(Context::current().random_scope, scope_in_pass(name));
  if (!o.recompute_blocks || o.activations) return block(p, x);
  return recompute([p, block](const Tensor& h) { return block(p, h); }, x);
}

}  // namespace redco

// The layers of nn/layers.h and models/attention_block.h, for model families.
#include "models/attention_block.h"
#include "nn/activations_by_name.h"
#include "python/bindings.h"

namespace redco::python {

namespace {

// "h.0.attn.c_attn[q]" is a part of a fused layer.
LayerName layer_name(const std::string& name) {
  const std::size_t bracket = name.find('[');
  if (bracket == std::string::npos || !name.ends_with(']')) return {name};
  return {name.substr(0, bracket), name.substr(bracket + 1, name.size() - bracket - 2)};
}

AttentionSettings attention_settings(double scale, bool causal, i64 window, double dropout, double softcap) {
  AttentionSettings s;
  s.scale = scale;
  s.causal = causal;
  s.window = window;
  s.dropout = dropout;
  s.softcap = softcap;
  return s;
}

// [query, key, value, output] of an attention.
AttentionBlock attention_block(const char* function, const std::vector<std::string>& names, i64 n_head,
                               i64 n_kv, i64 head_dim) {
  if (names.size() != 4)
    throw UsageError("{}() got {} names of layers; expected those of query, key, value and output", function,
                     names.size());
  return {.q = layer_name(names[0]),
          .k = layer_name(names[1]),
          .v = layer_name(names[2]),
          .out = layer_name(names[3]),
          .heads = {.n_head = n_head, .n_kv = n_kv > 0 ? n_kv : n_head, .head_dim = head_dim},
          .settings = {}};
}

// The cache of one layer in a pass.
struct CacheHandle {
  LayerCache* layer;
};

}  // namespace

void bind_layers(py::module_& m) {
  const auto maybe = [](const std::optional<Tensor>& t) { return t.value_or(Tensor()); };
  using MaybeTensor = std::optional<Tensor>;
  m.def(
      "run_block",
      [](const ParamTree& p, const ApplyOptions& o, const std::string& name, const Tensor& x,
         const py::object& block) {
        const auto f = callback<Tensor, const ParamTree&, const Tensor&>(block);
        const py::gil_scoped_release unlocked;
        return run_block(p, o, name, x, f);
      },
      "params"_a, "options"_a, "name"_a, "x"_a, "block"_a,
      "block(params, x), one of a model's blocks: computed again in the backward pass with train.recompute. "
      "It takes parameters from its argument.");
  m.def("residual", &residual, "options"_a, "x"_a, Free(),
        "What begins the residual stream [rows, tokens, width], or is added to it.");
  m.def("gather_tokens", &gather_tokens, "options"_a, "x"_a, Free(), "The input of an MLP, or of the head.");
  m.def("head_input", &head_input, "options"_a, "x"_a, Free());
  m.def(
      "dense",
      [](const ParamTree& p, const std::string& name, const Tensor& x, const ApplyOptions& o) {
        return dense(p, layer_name(name), x, o);
      },
      "params"_a, "name"_a, "x"_a, "options"_a = ApplyOptions{}, Free(),
      "A linear layer by the name of its parameters, with its adapter.");
  m.def(
      "lm_head",
      [](const ParamTree& p, const std::string& name, const Tensor& x, const ApplyOptions& o) {
        return lm_head(p, layer_name(name), x, o);
      },
      "params"_a, "name"_a, "x"_a, "options"_a, Free(),
      "The logits by a linear layer: of the last position only, where generation needs no others.");
  m.def(
      "dropout",
      [](const ApplyOptions& o, const std::string& site, double rate, const Tensor& x) {
        return dropout(o, site, rate, x);
      },
      "options"_a, "site"_a, "rate"_a, "x"_a, Free(), "Dropout in training; otherwise x.");
  m.def(
      "activation",
      [](const ApplyOptions& o, i64 layer, const std::string& part, const Tensor& x) {
        return activation(o, layer, part.empty() ? "" : ("." + part).c_str(), x);
      },
      "options"_a, "layer"_a, "part"_a, "x"_a, Free(),
      "The activation layers.N.PART, or layers.N if the part is '', which passes may read and replace.");
  m.def(
      "add_hidden_state",
      [](const ApplyOptions& o, const Tensor& x) {
        if (o.hidden_states) o.hidden_states->push_back(x);
      },
      "options"_a, "x"_a, "An entry of apply_with_hidden_states().");
  m.def(
      "project_heads",
      [](const ParamTree& p, const ApplyOptions& o, const std::vector<std::string>& names, const Tensor& x,
         i64 n_head, i64 n_kv, i64 head_dim) {
        const HeadGeometry g{.n_head = n_head, .n_kv = n_kv > 0 ? n_kv : n_head, .head_dim = head_dim};
        std::vector<HeadProjection> all;
        for (const std::string& name : names) all.push_back({layer_name(name), !all.empty()});
        return project_heads(p, all, x, g, p[all.at(0).name.weight()], o);
      },
      "params"_a, "options"_a, "names"_a, "x"_a, "n_head"_a, "n_kv"_a = 0, "head_dim"_a, Free(),
      "Queries, keys and values [rows, tokens, heads, head_dim], in this order, in one product.");
  m.def(
      "attend",
      [maybe](const ApplyOptions& o, std::size_t layer, const Tensor& q, const Tensor& k, const Tensor& v,
              const MaybeTensor& key_mask, std::optional<double> scale, bool causal, i64 window,
              double dropout, double softcap, const MaybeTensor& bias) {
        const double by = scale.value_or(1 / std::sqrt(static_cast<double>(q.size(-1))));
        return attend(o, attention_settings(by, causal, window, dropout, softcap), layer, q, k, v,
                      maybe(key_mask), maybe(bias));
      },
      "options"_a, "layer"_a, "q"_a, "k"_a, "v"_a, "key_mask"_a = py::none(), "scale"_a = py::none(),
      "causal"_a = true, "window"_a = 0, "dropout"_a = 0.0, "softcap"_a = 0.0, "bias"_a = py::none(), Free(),
      "Self-attention of [rows, tokens, heads, width]; with a cache, over all tokens in it. scale: default "
      "1/sqrt(width).");
  m.def(
      "self_attention",
      [maybe](const ParamTree& p, const ApplyOptions& o, std::size_t layer, const Tensor& x,
              const std::vector<std::string>& names, i64 n_head, i64 n_kv, i64 head_dim,
              const MaybeTensor& key_mask, const MaybeTensor& positions,
              const std::optional<std::vector<float>>& inv_freq, std::optional<double> scale, bool causal,
              i64 window, double dropout, double softcap, const MaybeTensor& bias) {
        RopeOptions rope;
        if (inv_freq) rope.inv_freq = std::make_shared<const std::vector<float>>(*inv_freq);
        const double by = scale.value_or(1 / std::sqrt(static_cast<double>(head_dim)));
        AttentionBlock block = attention_block("self_attention", names, n_head, n_kv, head_dim);
        block.settings = attention_settings(by, causal, window, dropout, softcap);
        if (inv_freq) block.rope = &rope;
        return self_attention(p, block, o, layer, x, maybe(key_mask), maybe(positions), maybe(bias));
      },
      "params"_a, "options"_a, "layer"_a, "x"_a, "names"_a, "n_head"_a, "n_kv"_a = 0, "head_dim"_a,
      "key_mask"_a = py::none(), "positions"_a = py::none(), "inv_freq"_a = py::none(),
      "scale"_a = py::none(), "causal"_a = true, "window"_a = 0, "dropout"_a = 0.0, "softcap"_a = 0.0,
      "bias"_a = py::none(), Free(),
      "Attention with its projections [q, k, v, out], [rows, tokens, width]; reads and extends the cache. "
      "inv_freq: of rotary positions.");

  m.def(
      "cross_attention",
      [maybe](const ParamTree& p, const ApplyOptions& o, std::size_t layer, const Tensor& x,
              const std::vector<std::string>& names, i64 n_head, i64 n_kv, i64 head_dim,
              const MaybeTensor& memory, const MaybeTensor& memory_mask, std::optional<double> scale,
              double dropout) {
        AttentionBlock block = attention_block("cross_attention", names, n_head, n_kv, head_dim);
        const double by = scale.value_or(1 / std::sqrt(static_cast<double>(head_dim)));
        block.settings = attention_settings(by, false, 0, dropout, 0);
        return cross_attention(p, block, o, layer, x, maybe(memory), maybe(memory_mask));
      },
      "params"_a, "options"_a, "layer"_a, "x"_a, "names"_a, "n_head"_a, "n_kv"_a = 0, "head_dim"_a,
      "memory"_a, "memory_mask"_a, "scale"_a = py::none(), "dropout"_a = 0.0, Free(),
      "Attention of [rows, tokens, width] over an encoder's output: inputs.memory and inputs.memory_mask. With a "
      "cache, which keeps keys and values, the memory may be None.");

  py::class_<CacheHandle>(m, "LayerCache", "The cache of one layer, in a pass.")
      .def_property_readonly("length", [](const CacheHandle& c) { return c.layer->length(); })
      .def("read",
           [](const CacheHandle& c) {
             const Tensors held = c.layer->read().entries;
             return std::vector<Tensor>(held.begin(), held.end());
           })
      .def(
          "append",
          [](const CacheHandle& c, const std::vector<Tensor>& entries, i64 tokens) {
            c.layer->append({entries.begin(), entries.end()}, tokens);
          },
          "entries"_a, "tokens"_a, Free());
  m.def(
      "layer_cache",
      [](const ApplyOptions& o, std::size_t layer) -> std::optional<CacheHandle> {
        if (!o.cache) return std::nullopt;
        return CacheHandle{&o.cache->layer(layer)};
      },
      "options"_a, "layer"_a,
      "The cache of a layer, or None if the pass has none. read() is empty at first.");
}

}  // namespace redco::python

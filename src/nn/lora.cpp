#include "nn/lora.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/words.h"
#include "ops/elementwise.h"
#include "ops/linear.h"
#include "ops/redistribute.h"
#include "shard/name_regex.h"

namespace redco {

namespace {

// Like PEFT's get_pattern_key: the first pattern that the name ends with.
template <class T>
const T* by_pattern(const std::map<std::string, T>& patterns, const std::string& module) {
  for (const auto& [pattern, value] : patterns)
    if (NameRegex("(.*\\.)?(" + pattern + ")").matches(module)) return &value;
  return nullptr;
}

bool ends_with_name(const std::string& module, const std::string& end) {
  return module == end || module.ends_with("." + end);
}

std::string last_part(const std::string& module) { return module.substr(module.rfind('.') + 1); }

std::string module_of(const std::string& parameter) { return parameter.substr(0, parameter.rfind('.')); }

// The stored name without `.weight`; "" if the parameter is not the weight of a linear layer, or of one that
// the model doesn't use (BERT's pooler).
std::string linear_module(const ParamSpec& s) {
  if (s.buffer || s.kind != ParamKind::linear || s.shape.size() != 2 || !s.adapter.weight.empty()) return "";
  return s.stored.name.ends_with(".weight") ? module_of(s.stored.name) : "";
}

// The distinct last components of names, in order.
std::vector<std::string> short_names(const std::vector<std::string>& modules) {
  std::vector<std::string> out;
  for (const std::string& m : modules)
    if (std::find(out.begin(), out.end(), last_part(m)) == out.end()) out.push_back(last_part(m));
  return out;
}

// Throws the error for a `name` that matches no linear layer.
[[noreturn]] void no_such_layer(const ModelParams& params, const std::string& name,
                                const std::vector<std::string>& linear, const std::string& where) {
  const std::vector<std::string> names = short_names(linear);
  const std::string known = fmt::format("the model's linear layers are {}", fmt::join(names, ", "));
  for (const auto& [alias, target] : params.aliases)
    if (ends_with_name(module_of(alias), name))
      throw UsageError("[lora] {}: '{}' has no separate weight, it shares {}; {}", where, excerpt(name),
                       target, known);
  for (const ParamSpec& s : params.specs)
    if (ends_with_name(module_of(s.stored.name), name))
      throw UsageError("[lora] {}: '{}' is not a linear layer; only linear layers can have adapters; {}",
                       where, excerpt(name), known);
  const std::string near = nearest(last_part(name), names);
  throw UsageError("[lora] {}: '{}' matches no layer of this model; {}{}", where, excerpt(name),
                   near.empty() ? "" : "did you mean " + near + "? ", known);
}

}  // namespace

i64 LoraConfig::rank_of(const std::string& module) const {
  const i64* own = by_pattern(rank_pattern, module);
  return own ? *own : rank;
}

double LoraConfig::scale_of(const std::string& module) const {
  const double* own = by_pattern(alpha_pattern, module);
  const auto r = static_cast<double>(rank_of(module));
  return (own ? *own : alpha) / (use_rslora ? std::sqrt(r) : r);
}

bool LoraConfig::saves(const std::string& parameter) const {
  const std::string module = module_of(parameter);
  return std::any_of(modules_to_save.begin(), modules_to_save.end(),
                     [&](const std::string& end) { return module.ends_with(end); });
}

std::vector<std::string> linear_modules(const ModelParams& params) {
  std::vector<std::string> out;
  std::set<std::string> seen;
  for (const ParamSpec& s : params.specs)
    if (const std::string m = linear_module(s); !m.empty() && seen.insert(m).second) out.push_back(m);
  return out;
}

std::vector<std::string> lora_targets(const ModelParams& params, const LoraConfig& config,
                                      const std::string& where) {
  const std::vector<std::string> linear = linear_modules(params);
  std::vector<std::string> out;
  if (!config.target_regex.empty()) {
    const NameRegex regex(config.target_regex);
    for (const std::string& m : linear)
      if (regex.matches(m)) out.push_back(m);
    if (out.empty())
      throw UsageError(
          "[lora] {}: '{}' matches no linear layer (it must match the whole name, such as {}); the names of "
          "linear layers end in {}",
          where, excerpt(config.target_regex), linear.empty() ? "none" : linear.front(),
          fmt::join(short_names(linear), ", "));
    return out;
  }
  if (config.target_modules == std::vector<std::string>{kAllLinear}) {
    for (const std::string& m : linear)
      // As in PEFT: all linear layers but the output embedding and the modules that are trained whole.
      if (last_part(m) != "lm_head" && !config.saves(m + ".weight")) out.push_back(m);
    return out;
  }
  if (config.target_modules.empty()) throw UsageError("[lora] {}: the list of layers is empty", where);
  for (const std::string& name : config.target_modules)
    if (std::none_of(linear.begin(), linear.end(),
                     [&](const std::string& m) { return ends_with_name(m, name); }))
      no_such_layer(params, name, linear, where);
  for (const std::string& m : linear)
    for (const std::string& name : config.target_modules)
      if (ends_with_name(m, name)) {
        out.push_back(m);
        break;
      }
  return out;
}

std::vector<std::string> short_targets(const ModelParams& params, const std::vector<std::string>& modules) {
  const std::vector<std::string> names = short_names(modules);
  if (names.empty()) return modules;
  LoraConfig by_end;
  by_end.target_modules = names;
  return lora_targets(params, by_end, "target_modules") == modules ? names : modules;
}

ModelParams with_lora(ModelParams params, const LoraConfig& config, const std::vector<std::string>& modules,
                      const std::string& where) {
  for (ParamSpec& s : params.specs) s.frozen = true;
  const std::set<std::string> wanted(modules.begin(), modules.end());
  for (const std::string& name : config.modules_to_save) {
    bool found = false;
    for (const auto& [alias, target] : params.aliases)
      if (module_of(alias).ends_with(name) || module_of(target).ends_with(name))
        throw UsageError(
            "[lora] {}: modules_to_save: '{}' matches {}, which share one tied weight; this is not supported",
            where, excerpt(name), fmt::format("{} and {}", alias, target));
    for (ParamSpec& s : params.specs) {
      if (!module_of(s.stored.name).ends_with(name)) continue;
      if (wanted.count(module_of(s.stored.name)))
        throw UsageError("[lora] {}: '{}' is in modules_to_save and would also get an adapter", where,
                         module_of(s.stored.name));
      s.frozen = false;
      found = true;
    }
    if (!found)
      throw UsageError("[lora] {}: modules_to_save: no module's name ends in '{}'", where, excerpt(name));
  }

  std::set<std::string> with_a;
  const size_t n = params.specs.size();
  for (size_t i = 0; i < n; ++i) {
    const ParamSpec base = params.specs[i];
    const std::string module = linear_module(base);
    if (module.empty() || !wanted.count(module)) continue;
    const i64 rank = config.rank_of(module), in = base.shape[1];
    if (rank < 1) throw UsageError("[lora] {}: the rank is {}; expected at least 1", where, rank);
    ParamSpec s;
    s.kind = ParamKind::linear;
    s.adapter = {.weight = base.name, .dim = 1, .scale = config.scale_of(module), .dropout = config.dropout};
    if (with_a.insert(module).second) {
      s.name = module + ".lora_A.weight";
      s.shape = {rank, in};
      s.stored = {s.name, s.shape, false, 0};
      // PyTorch's kaiming_uniform_(a=sqrt(5)): bound sqrt(6 / ((1 + 5) in)).
      s.init = {Init::Kind::uniform, 1 / std::sqrt(static_cast<double>(in))};
      params.specs.push_back(s);
    }
    const std::string part =
        base.name.ends_with("]") ? base.name.substr(base.name.rfind('[')) : std::string();
    const i64 rows = base.stored.shape[base.stored.transposed ? 1 : 0];
    s.name = module + ".lora_B.weight" + part;
    s.shape = {base.shape[0], rank};
    s.stored = {.name = module + ".lora_B.weight",
                .shape = {rows, rank},
                .row = base.stored.row,
                .block = base.stored.block,
                .step = base.stored.step};
    s.init = {Init::Kind::zeros, 0};
    s.adapter.dim = 0;
    params.specs.push_back(s);
  }
  return params;
}

std::vector<bool> trained_ones(const std::vector<ParamSpec>& specs) {
  std::vector<bool> out;
  for (const ParamSpec& s : specs) out.push_back(s.trained());
  return out;
}

std::vector<bool> no_adapters(const std::vector<ParamSpec>& specs) {
  std::vector<bool> out;
  for (const ParamSpec& s : specs) out.push_back(s.adapter.weight.empty());
  return out;
}

Tensors adapted_layers(const ParamTree& p, const std::vector<AdaptedLayer>& layers, const Tensor& x,
                       const ApplyOptions& o) {
  Tensors weights, biases;
  for (const AdaptedLayer& l : layers) {
    weights.push_back(l.weight);
    biases.push_back(l.bias);
  }
  Tensors y = linear(x, weights, biases);
  if (!p.any_adapters()) return y;
  Tensor in;
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerName& name = layers[i].name;
    const std::string a = name.prefix + ".lora_A.weight";
    const ParamSpec* const spec = p.find_spec(a);
    if (!spec) continue;
    const Tensor& b = p[LayerName(name.prefix + ".lora_B", name.part).weight()];
    // All parts of a fused projection share one A, and so one input and one draw.
    if (i == 0 || layers[i - 1].name.prefix != name.prefix)
      in = dropout(o, name.prefix + ".lora_dropout", spec->adapter.dropout, x);
    y[i] =
        add_low_rank(y[i], in, {p[a], layers[i].as_weight ? layers[i].as_weight(b) : b, spec->adapter.scale});
  }
  return y;
}

void merge_adapters(const ParamTree& p) {
  NoGrad off;
  for (size_t i = 0; i < p.size(); ++i) {
    const ParamSpec& s = p.specs()[i];
    if (s.adapter.dim != 0) continue;
    const Tensor& w = p[s.adapter.weight];
    const std::string module = s.name.substr(0, s.name.rfind(".lora_B.weight"));
    const Tensor delta = redistribute(matmul(p.values()[i], p[module + ".lora_A.weight"]), w.layout());
    Context::current().run(&Kernels::axpy, s.adapter.scale, delta, w);
  }
}

}  // namespace redco

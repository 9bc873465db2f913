#include "python/bindings.h"

namespace redco::python {

namespace {

bool has_elements(const py::object& x) {
  return py::isinstance<py::list>(x) ||
         (py::hasattr(x, "__array__") && py::len(py::module_::import("numpy").attr("shape")(x)) > 0);
}

// init of a parameter `name`: a number, an array of its shape, a name, or ("copy", name of a parameter).
Init init_of(const std::string& name, const Shape& shape, const py::object& init, double std) {
  if (py::isinstance<py::tuple>(init)) {
    const auto pair = py::cast<std::pair<std::string, std::string>>(init);
    if (pair.first != "copy")
      throw UsageError("{}: init=('{}', ...) is unknown; expected ('copy', name)", name, pair.first);
    return {.kind = Init::Kind::copy, .source = pair.second};
  }
  if (has_elements(init)) {
    const py::object array = glue("floats")(init);
    if (shape_of(array) != shape)
      throw UsageError("{} has the shape {}, but its initial values have the shape {}", name,
                       to_string(shape), to_string(shape_of(array)));
    return {.kind = Init::Kind::values,
            .values = std::make_shared<const std::vector<float>>(elements<float>(array))};
  }
  if (py::isinstance<py::float_>(init) || py::isinstance<py::int_>(init))
    return {.kind = Init::Kind::constant, .std = py::cast<double>(init)};
  const std::string kind = py::isinstance<py::str>(init) ? py::cast<std::string>(init) : "";
  if (kind == "zeros") return {.kind = Init::Kind::zeros};
  if (kind == "ones") return {.kind = Init::Kind::ones};
  if (kind == "normal") return {.kind = Init::Kind::normal, .std = std};
  if (kind == "uniform") return {.kind = Init::Kind::uniform, .std = std};
  throw UsageError(
      "{}: init {} is unknown; expected zeros, ones, normal, uniform, a number, an array or "
      "('copy', name)",
      name, py::cast<std::string>(py::repr(init)));
}

// init of a layer PREFIX.weight and PREFIX.bias, the last specs: an array is that of the weight, (array,
// array) are both, ('copy', PREFIX) copies a layer; all else is as in init_of(), for both.
void init_layer(ModelParams& params, const std::string& prefix, bool bias, const py::object& init,
                double std) {
  if (init.is_none()) return;
  std::span<ParamSpec> specs = std::span(params.specs).last(bias ? 2 : 1);
  const bool tuple = py::isinstance<py::tuple>(init);
  const bool both = tuple && py::len(init) == 2 && !py::isinstance<py::str>(py::cast<py::tuple>(init)[0]);
  for (std::size_t k = 0; k < specs.size(); ++k) {
    ParamSpec& s = specs[k];
    if (both) {
      s.init = init_of(s.name, s.shape, py::cast<py::tuple>(init)[k], std);
    } else if (k == 0 || !has_elements(init)) {
      s.init = init_of(s.name, s.shape, init, std);
      if (s.init.kind == Init::Kind::copy) s.init.source += s.name.substr(prefix.size());
    }
  }
}

// specs: a copy, because a tree may copy its own parameters.
void add_copies(ModelParams& to, std::vector<ParamSpec> specs, const std::string& prefix) {
  for (ParamSpec& s : specs) {
    if (s.buffer) continue;
    s.init = {.kind = Init::Kind::copy, .source = s.name};
    s.name = prefix + s.name;
    s.stored = {};
    s.stored.shape = s.shape;
    s.stored.name = s.name;
    to.specs.push_back(s);
  }
}

Role role_named(const std::string& name) {
  if (name == "first") return Role::first;
  if (name == "second") return Role::second;
  if (name == "head") return Role::head;
  if (name == "router") return Role::router;
  throw UsageError("role '{}' of a linear layer is unknown; expected first, second, head or router", name);
}

// ModelParams and the builder that declares them.
struct Declared {
  ModelParams params;
  SpecBuilder builder{params};
  Declared() = default;
  Declared(const Declared&) = delete;
};

ParamTree with_named(const ParamTree& tree, const std::map<std::string, Tensor>& values) {
  ParamTree out = tree.with_values(tree.values());
  for (const auto& [name, value] : values) out.set(name, value);
  return out;
}

}  // namespace

void bind_params(py::module_& m) {
  py::class_<ParamTree>(m, "ParamTree", "Parameters by name, in order of definition.")
      .def("__getitem__", [](const ParamTree& p, const std::string& name) { return p[name]; })
      .def("__contains__", &ParamTree::has)
      .def("__len__", &ParamTree::size)
      .def("keys",
           [](const ParamTree& p) {
             std::vector<std::string> names;
             for (const ParamSpec& s : p.specs()) names.push_back(s.name);
             return names;
           })
      .def("values", [](const ParamTree& p) { return p.values(); })
      .def("items",
           [](const ParamTree& p) {
             std::vector<std::pair<std::string, Tensor>> out;
             for (std::size_t i = 0; i < p.size(); ++i) out.emplace_back(p.specs()[i].name, p.values()[i]);
             return out;
           })
      .def(
          "trained",
          [](const ParamTree& p) {
            std::vector<std::string> names;
            for (const ParamSpec& s : p.specs())
              if (s.trained()) names.push_back(s.name);
            return names;
          },
          "The names of the parameters that are trained.")
      .def("part", &ParamTree::part, "owner"_a, "The parameters of a model of `models:`, by their own names.")
      .def("has_part", &ParamTree::has_part, "owner"_a)
      .def("without_adapters", &ParamTree::without_adapters)
      .def(
          "watched",
          [](const ParamTree& p) {
            std::vector<Tensor> values = p.values();
            for (std::size_t i = 0; i < values.size(); ++i)
              if (p.specs()[i].trained()) values[i] = watched(values[i]);
            return p.with_values(std::move(values));
          },
          "The tree, for gradients with respect to the trained values in it: as Tensor.watched().")
      .def(
          "with_prefix",
          [](const ParamTree& p, const std::string& prefix) {
            std::map<std::string, Tensor> values;
            for (std::size_t i = 0; i < p.size(); ++i)
              if (const std::string& name = p.specs()[i].name; name.starts_with(prefix))
                values[name.substr(prefix.size())] = p.values()[i];
            if (values.empty()) throw UsageError("no parameter's name begins with '{}'", prefix);
            return with_named(p, values);
          },
          "prefix"_a, "The tree with the values of PREFIXname in the place of each name.")
      .def("with_values", &with_named, "values"_a, "The same tree with other values of these names.");

  py::class_<Declared, std::shared_ptr<Declared>>(m, "Params", "Declares parameters, in order.")
      .def(py::init<>())
      .def(
          "add",
          [](Declared& d, const std::string& name, const std::vector<i64>& shape, const py::object& init,
             double std, bool buffer, const std::optional<int>& cut) {
            ParamSpec& s = d.builder.add(name, to_shape(shape), ParamKind::other,
                                         init_of(name, to_shape(shape), init, std));
            s.buffer = buffer;
            if (cut) s.cut = *cut;
          },
          "name"_a, "shape"_a, "init"_a = "zeros", "std"_a = 0.02, "buffer"_a = false, "cut"_a = py::none(),
          "A tensor. init: zeros, ones, normal, uniform, a number, an array of its shape, or ('copy', name): it begins "
          "as a copy of that parameter. cut: the dim that is cut over the model shards, -1 for none.")
      .def(
          "linear",
          [](Declared& d, const std::string& prefix, i64 out, i64 in, bool bias, double std, i64 n_head,
             i64 n_kv, bool kv, const std::string& heads_of, const py::object& init,
             const std::string& role) {
            HeadsOf heads;
            if (n_head > 0) {
              const i64 kv_heads = n_kv > 0 ? n_kv : n_head, width = heads_of == "in" ? in : out;
              const i64 count = kv ? kv_heads : n_head;
              if (width % count != 0)
                throw UsageError("linear layer {}: {} columns are not {} heads of one width", prefix, width,
                                 count);
              heads = {heads_of == "in" ? 1 : 0, n_head, kv_heads, width / count, kv};
            }
            ParamSpec& weight = d.builder.linear(prefix, out, in, bias, std, false, heads);
            if (!role.empty()) weight.role = role_named(role);
            init_layer(d.params, prefix, bias, init, std);
          },
          "prefix"_a, "out"_a, "in_"_a, "bias"_a = true, "std"_a = 0.02, "n_head"_a = 0, "n_kv"_a = 0,
          "kv"_a = false, "heads_of"_a = "out", "init"_a = py::none(), "role"_a = "",
          "PREFIX.weight [out, in], normal, and PREFIX.bias, zeros. init: of both, as in add(); an array is that of the "
          "weight, (array, array) are weight and bias, ('copy', PREFIX) copies another layer. n_head: the outputs "
          "(or heads_of='in': the inputs) are heads of an attention, which are not cut; kv: a key or value "
          "projection of n_kv heads. role: 'first' and 'second' of an MLP, 'head' or 'router', for the sharding; "
          "without any, names and shapes decide.")
      .def(
          "embedding",
          [](Declared& d, const std::string& name, i64 rows, i64 width, double std, const py::object& init) {
            d.builder.embedding(name, rows, width, std);
            if (!init.is_none()) d.params.specs.back().init = init_of(name, {rows, width}, init, std);
          },
          "name"_a, "rows"_a, "width"_a, "std"_a = 0.02, "init"_a = py::none(),
          "A table NAME [rows, width], normal. init: as in add().")
      .def(
          "norm",
          [](Declared& d, const std::string& prefix, i64 width, bool bias) {
            d.builder.norm(prefix, width, bias);
          },
          "prefix"_a, "width"_a, "bias"_a = true)
      .def(
          "conv",
          [](Declared& d, const std::string& prefix, i64 out, i64 in, i64 height, i64 width, bool bias,
             double std, const py::object& init) {
            d.builder.conv(prefix, out, in, height, width, bias, std);
            init_layer(d.params, prefix, bias, init, std);
          },
          "prefix"_a, "out"_a, "in_"_a, "height"_a, "width"_a, "bias"_a = true, "std"_a = 0.02,
          "init"_a = py::none(),
          "PREFIX.weight [out, in, height, width], normal, and PREFIX.bias, zeros. init: as of linear().")
      .def(
          "fused",
          [](Declared& d, const std::string& prefix, const py::dict& parts, i64 in, bool bias, double std,
             bool transposed, i64 n_head, i64 n_kv, bool by_head) {
            std::vector<SpecBuilder::Part> all;
            for (const auto& [key, value] : parts) {
              SpecBuilder::Part part{.name = py::cast<std::string>(key), .rows = py::cast<i64>(value)};
              if (n_head > 0) {
                const bool kv = !all.empty() && parts.size() == 3;
                const i64 heads = n_kv > 0 ? n_kv : n_head, count = kv ? heads : n_head;
                if (part.rows % count != 0)
                  throw UsageError("part {} of {}: {} rows are not {} heads of one width", part.name, prefix,
                                   part.rows, count);
                part.heads = {0, n_head, heads, part.rows / count, kv};
                if (by_head) part.block = part.rows / count;
              }
              all.push_back(part);
            }
            d.builder.fused(prefix, all, in, bias, std, transposed);
          },
          "prefix"_a, "parts"_a, "in_"_a, "bias"_a = true, "std"_a = 0.02, "transposed"_a = false,
          "n_head"_a = 0, "n_kv"_a = 0, "by_head"_a = false,
          "Layers PREFIX[PART] of one input, whose rows are one stored tensor: p.fused('attn', {'q': 64, 'k': 64, 'v': "
          "64}, 64, n_head=4). transposed: stored as [in, out] (GPT-2). n_head: the parts are queries, keys and "
          "values; by_head: stored head by head (GPT-NeoX).")
      .def(
          "include",
          [](Declared& d, const ModelParams& others) {
            for (const ParamSpec& s : others.specs) d.params.specs.push_back(s);
            for (const auto& [alias, name] : others.aliases) d.params.aliases[alias] = name;
          },
          "others"_a, "The parameters of a model, under their names.")
      .def(
          "copies",
          [](Declared& d, const ModelParams& others, const std::string& prefix) {
            add_copies(d.params, others.specs, prefix);
          },
          "others"_a, "prefix"_a,
          "PREFIXname for each parameter of a model, or of a Params, which begins as its copy: a moving average, "
          "a second copy. params.with_prefix(PREFIX) gives them by the names of the first ones.")
      .def(
          "copies",
          [](Declared& d, const Declared& others, const std::string& prefix) {
            add_copies(d.params, others.params.specs, prefix);
          },
          "others"_a, "prefix"_a)
      .def(
          "tie",
          [](Declared& d, const std::string& alias, const std::string& name) { d.builder.tie(alias, name); },
          "alias"_a, "name"_a)
      .def_property_readonly("_params", [](const Declared& d) { return d.params; })
      .def_property_readonly("names", [](const Declared& d) {
        std::vector<std::string> names;
        for (const ParamSpec& s : d.params.specs) names.push_back(s.name);
        return names;
      });

  py::class_<ModelParams>(m, "ModelParams").def_property_readonly("names", [](const ModelParams& p) {
    std::vector<std::string> names;
    for (const ParamSpec& s : p.specs) names.push_back(s.name);
    return names;
  });

  m.def(
      "layer_norm_of",
      [](const ParamTree& p, const std::string& prefix, const Tensor& x, double eps) {
        return layer_norm(p, prefix, x, eps);
      },
      "params"_a, "prefix"_a, "x"_a, "eps"_a = 1e-5, Free());
  m.def(
      "rms_norm_of",
      [](const ParamTree& p, const std::string& prefix, const Tensor& x, double eps) {
        return rms_norm(p, prefix, x, eps);
      },
      "params"_a, "prefix"_a, "x"_a, "eps"_a = 1e-6, Free());

  py::class_<FastWeights> fast(m, "FastWeights", "Steps of gradient descent inside of a loss (MAML).");
  fast.def(py::init([](const ModelParams& params, const ParamTree& shared, i64 tasks,
                       const std::string& order) {
             using Order = FastWeights::Order;
             const Order o = order == "none" ? Order::none : order == "first" ? Order::first : Order::second;
             return std::make_unique<FastWeights>(params, shared, tasks, o);
           }),
           "params"_a, "shared"_a, "tasks"_a, "order"_a = "second", py::keep_alive<1, 2>())
      .def(
          "descend",
          [](FastWeights& w, const py::object& loss, double learning_rate) {
            const auto f = callback<Tensor, const ParamTree&>(loss);
            const py::gil_scoped_release unlocked;
            w.descend(f, learning_rate);
          },
          "loss"_a, "learning_rate"_a)
      .def("params", &FastWeights::params, Free());
}

}  // namespace redco::python

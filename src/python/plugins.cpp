#include "python/plugins.h"

#include <utility>

#include "models/plugin_families.h"
#include "python/settings.h"

namespace redco::python {

namespace {

// What an optimizer reads of a parameter.
struct ParamFacts {
  std::string name, kind;
  std::vector<i64> shape;
};

// What update() gets as `ctx`: a copy, which the user may keep.
struct RuleContext {
  std::shared_ptr<const ParamFacts> spec;
  i64 updates;
  double learning_rate, weight_decay;
};

class PythonRule final : public UpdateRule {
 public:
  explicit PythonRule(const py::object& object) : object_(hold(object)) {
    elementwise_ = py::cast<bool>(object.attr("elementwise"));
    on_shards_ = py::cast<bool>(object.attr("on_shards"));
    if (const py::object names = object.attr("state"); !PyCallable_Check(names.ptr()))
      names_ = py::cast<std::vector<std::string>>(glue("state_names")(names));
  }
  bool elementwise() const override { return elementwise_; }
  bool on_shards() const override { return on_shards_; }
  std::vector<std::string> state() const override { return names_; }
  std::vector<StateSpec> state_of(const ParamSpec& spec) const override { return known(spec).state; }

  Update update(const Tensor& param, const Tensor& gradient, const Tensors& state,
                const UpdateContext& c) const override {
    const Known& of = known(c.spec);
    return with_python([&]() -> Update {
      py::dict now;
      for (std::size_t s = 0; s < state.size(); ++s) now[py::str(of.state[s].name)] = state[s];
      const RuleContext ctx{of.facts, c.updates, c.learning_rate, c.weight_decay};
      const py::object made = object_->attr("update")(param, gradient, now, ctx);
      if (py::isinstance<Tensor>(made) && state.empty()) return {py::cast<Tensor>(made)};
      if (!py::isinstance<py::tuple>(made) || py::len(made) != 2)
        throw PythonError(fmt::format(
            "it returned {}; expected {}",
            py::cast<std::string>(py::str(py::type::of(made).attr("__name__"))),
            state.empty() ? "the new parameter" : "(the new parameter, a dict of its new state)"));
      const py::tuple both = py::cast<py::tuple>(made);
      Update out{py::cast<Tensor>(both[0])};
      const py::dict next = py::cast<py::dict>(both[1]);
      for (const StateSpec& s : of.state) {
        if (!next.contains(s.name))
          throw PythonError(fmt::format("the new state that it returned has no '{}'", s.name));
        out.state.push_back(py::cast<Tensor>(next[py::str(s.name)]));
      }
      if (next.size() != of.state.size())
        throw PythonError("the new state that it returned has more entries than `state` names");
      return out;
    });
  }

 private:
  // Asked once for each parameter: a rule belongs to one rank, so no other thread reads it.
  struct Known {
    std::shared_ptr<const ParamFacts> facts;
    std::vector<StateSpec> state;
  };
  const Known& known(const ParamSpec& spec) const {
    const auto found = known_.find(spec.name);
    if (found != known_.end()) return found->second;
    Known k{
        std::make_shared<const ParamFacts>(ParamFacts{spec.name, name_of(spec.kind), dims_of(spec.shape)}),
        {}};
    with_python([&] {
      for (const py::handle& item : glue("state_of")(*object_, k.facts)) {
        const auto [name, shape] = py::cast<std::pair<std::string, std::vector<i64>>>(item);
        k.state.push_back({name, to_shape(shape)});
      }
    });
    return known_.emplace(spec.name, std::move(k)).first->second;
  }

  Held object_;
  bool elementwise_ = false, on_shards_ = false;
  std::vector<std::string> names_;
  mutable std::map<std::string, Known> known_;
};

std::unique_ptr<UpdateRule> make_rule(const Held& klass, const std::string& settings) {
  return with_python([&]() -> std::unique_ptr<UpdateRule> {
    const py::dict values =
        read_settings(glue("settings_specs")(*klass), "train.optimizer_settings", settings, {});
    return std::make_unique<PythonRule>((*klass)(**values));
  });
}

}  // namespace

RuleSettings rule_of(const py::object& optimizer) {
  return {.name = py::cast<std::string>(glue("plugin_name")(py::type::of(optimizer))),
          .origin = "",
          .rule = std::make_shared<const PythonRule>(optimizer)};
}

PythonPlugin load_plugin(const std::string& path) {
  return with_python([&] {
    // (optimizers, families: lists of (name, class); hash of the code)
    const py::tuple loaded = py::cast<py::tuple>(glue("load_plugin")(path));
    PythonPlugin out{.fingerprint = py::cast<std::string>(loaded[2]), .families = {}, .optimizers = {}};
    for (const py::handle& entry : loaded[0]) {
      const auto [name, klass] = py::cast<std::pair<std::string, py::object>>(entry);
      add_optimizer({name, [held = hold(klass)](const std::string& s) { return make_rule(held, s); }, path});
      out.optimizers.push_back(name);
    }
    for (const py::handle& entry : loaded[1]) {
      const auto [name, klass] = py::cast<std::pair<std::string, py::object>>(entry);
      add_family({.name = name,
                  .architecture = py::cast<std::string>(klass.attr("__name__")),
                  .make = [held = hold(klass)](ModelConfig& c) { return make_python_model(held, c); },
                  .vocabulary = py::cast<bool>(klass.attr("vocabulary")),
                  .origin = path});
      out.families.push_back(name);
    }
    return out;
  });
}

void bind_plugins(py::module_& m) {
  bind_families(m);
  py::class_<ParamFacts, std::shared_ptr<ParamFacts>>(m, "ParamSpec", "A parameter, as an optimizer sees it.")
      .def_readonly("name", &ParamFacts::name)
      .def_readonly("kind", &ParamFacts::kind, "linear, embedding, conv, norm, bias or other")
      .def_property_readonly("shape", [](const ParamFacts& f) { return py::tuple(py::cast(f.shape)); });
  py::class_<RuleContext>(m, "UpdateContext", "About the parameter that an optimizer updates.")
      .def_property_readonly("spec",
                             [](const RuleContext& c) { return std::const_pointer_cast<ParamFacts>(c.spec); })
      .def_readonly("updates", &RuleContext::updates, "Of this parameter, this one included.")
      .def_readonly("learning_rate", &RuleContext::learning_rate, "Of this step and parameter group.")
      .def_readonly("weight_decay", &RuleContext::weight_decay,
                    "train.weight_decay; 0 for norms and biases unless train.decay_norms_and_biases.");
}

}  // namespace redco::python

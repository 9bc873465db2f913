// Options of a forward pass: attention that differs from the family's, and activations by name.
#include "python/bindings.h"

namespace redco::python {

namespace {

constexpr const char* kOptions =
    "Options of a forward pass, for a model's functions. causal: of self-attention (False: all tokens see each "
    "other). attention_bias [1 or rows, 1 or heads, tokens, keys]: added to its scores. activations: an "
    "Activations.";

std::shared_ptr<Activations> make_activations(const std::vector<std::string>& captures,
                                              const std::map<std::string, py::object>& replace) {
  std::map<std::string, Activations::Replacement> replaced;
  for (const auto& [name, by] : replace) {
    if (py::isinstance<Tensor>(by))
      replaced[name] = [value = py::cast<Tensor>(by)](const Tensor&) { return value; };
    else
      replaced[name] = callback<Tensor, const Tensor&>(by);
  }
  return std::make_shared<Activations>(captures, std::move(replaced));
}

}  // namespace

ApplyOptions with_options(ApplyOptions o, const py::kwargs& given) {
  for (const auto& [key, value] : given) {
    const std::string name = py::cast<std::string>(key);
    if (name == "train")
      o.train = py::cast<bool>(value);
    else if (name == "last_position_only")
      o.last_position_only = py::cast<bool>(value);
    else if (name == "segmented")
      o.segmented = py::cast<bool>(value);
    else if (name == "causal")
      o.causal = py::cast<std::optional<bool>>(value);
    else if (name == "attention_bias")
      o.attention_bias = value.is_none() ? Tensor() : py::cast<Tensor>(value);
    else if (name == "activations")
      o.activations = value.is_none() ? nullptr : py::cast<std::shared_ptr<Activations>>(value);
    else
      throw UsageError(
          "a forward pass has no option '{}'; it has train, last_position_only, segmented, causal, "
          "attention_bias, activations",
          name);
  }
  return o;
}

void bind_apply_options(py::module_& m) {
  py::class_<Activations, std::shared_ptr<Activations>>(
      m, "Activations",
      "Activations of a model by name (embedding, layers.N, layers.N.attention, layers.N.mlp, final_norm): those of "
      "`captures` can be read after the pass, those of `replace` are tensors or functions of the value.")
      .def(py::init(&make_activations), "captures"_a = std::vector<std::string>{},
           "replace"_a = std::map<std::string, py::object>{})
      .def("__getitem__", [](const Activations& a, const std::string& name) { return a[name]; })
      .def("keys", &Activations::captures);
  py::class_<ApplyOptions>(m, "ApplyOptions", kOptions)
      .def(py::init([](const py::kwargs& given) { return with_options({}, given); }))
      .def_readwrite("train", &ApplyOptions::train)
      .def_readwrite("last_position_only", &ApplyOptions::last_position_only)
      .def_readwrite("segmented", &ApplyOptions::segmented)
      .def_readonly("causal", &ApplyOptions::causal);
  m.def("bias_of_mask", &bias_of_mask, "seen"_a, Free(),
        "A bias of scores: 0 where `seen` is not 0, so low elsewhere that the probability is 0.");
  m.def(
      "prefix_bias", &prefix_bias, "prefix"_a, "tokens"_a, Free(),
      "Prefix language models: [rows, 1, tokens, tokens] for numbers of prefix tokens [rows]. With causal=False.");
  m.def("block_bias", &block_bias, "tokens"_a, "block"_a, Free(),
        "Blocks see themselves and earlier blocks: [1, 1, tokens, tokens]. With causal=False.");
}

}  // namespace redco::python

// Model families in Python: a Model whose functions call the user's.
#include "nn/cache_forms.h"
#include "python/plugins.h"

namespace redco::python {

namespace {

// The config while the user's class reads it.
struct ConfigHandle {
  ModelConfig* config = nullptr;
  ModelConfig& operator*() const {
    if (!config) throw UsageError("fail() of a family is for spec(), before the model exists");
    return *config;
  }
};

ModelTask task_named(const std::string& name) {
  std::string known;
  for (int t = 0; t <= static_cast<int>(ModelTask::image_text_contrastive); ++t) {
    const auto task = static_cast<ModelTask>(t);
    if (name == name_of(task)) return task;
    known += (known.empty() ? "" : ", ") + std::string(name_of(task));
  }
  throw UsageError("`task` is '{}'; expected one of: {}", name, known);
}

class PythonModel final : public Model {
 public:
  // REQUIRES: Python's lock.
  PythonModel(const py::object& klass, ModelConfig& c) {
    const auto place = std::make_shared<ConfigHandle>(ConfigHandle{&c});
    object_ = hold(glue("make_family")(klass, place));
    const py::object declared = glue("params")();
    object_->attr("spec")(declared);
    params_ = py::cast<ModelParams>(declared.attr("_params"));
    place->config = nullptr;
    const py::dict facts = py::cast<py::dict>(glue("facts")(*object_));
    const auto get = [&](const char* name, auto& to) {
      to = py::cast<std::decay_t<decltype(to)>>(facts[name]);
    };
    get("vocab_size", vocab_size_);
    get("hidden_size", hidden_size_);
    get("n_layers", n_layers_);
    get("max_length", max_length_);
    get("num_labels", num_labels_);
    get("n_features", n_features_);
    get("problem_type", problem_type_);
    get("relative_positions", relative_positions_);
    get("attends", attends_);
    get("cache", cache_forms_);
    get("windows", windows_);
    get("decoder_start_token_id", decoder_start_token_id_);
    get("pad_token_id", pad_token_id_);
    get("pads_texts", pads_texts_);
    get("own", own_);
    const auto [channels, height, width] = py::cast<std::tuple<i64, i64, i64>>(facts["image_shape"]);
    image_shape_ = {channels, height, width};
    task_ = task_named(py::cast<std::string>(facts["task"]));
    config_json_ =
        ConfigJson::parse(py::cast<std::string>(glue("config_text")(*object_, c.dump().text())), c.source());
  }

  ModelCache make_cache(const CacheOptions& o) const override {
    ModelCache::Layers layers, memories;
    for (i64 i = 0; i < n_layers_; ++i) {
      if (cache_forms_.at(static_cast<std::size_t>(i)) == "state")
        layers.push_back(std::make_unique<StateCache>());
      else
        layers.push_back(std::make_unique<ColumnCache>(o, window(i)));
      if (is_encoder_decoder()) memories.push_back(std::make_unique<MemoryCache>(o));
    }
    return {std::move(layers), std::move(memories), o.capacity};
  }
  std::vector<i32> positions(std::span<const i32> mask, bool generating) const override {
    if (!defines("positions")) return Model::positions(mask, generating);
    return with_python([&] {
      const std::vector<i32> given(mask.begin(), mask.end());
      auto out = py::cast<std::vector<i32>>(py::list(object_->attr("positions")(given, generating)));
      if (out.size() != given.size())
        throw PythonError(
            fmt::format("positions() returned {} numbers for a mask of {}", out.size(), given.size()));
      return out;
    });
  }
  std::string canonical_name(const std::string& stored) const override {
    if (!defines("canonical_name")) return stored;
    return with_python([&] {
      const py::object name = object_->attr("canonical_name")(stored);
      return name.is_none() ? std::string() : py::cast<std::string>(name);
    });
  }

 protected:
  Tensor decode(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const override {
    return call("decode", p, in, o);
  }
  Tensor encode_memory(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const override {
    return call("encode", p, in, o);
  }
  Tensor encode_outputs(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const override {
    return call("encode_outputs", p, in, o);
  }
  i64 window(i64 layer) const override { return windows_.at(static_cast<std::size_t>(layer)); }

 private:
  bool defines(const char* function) const { return std::ranges::count(own_, function) > 0; }
  template <class Inputs>
  Tensor call(const char* function, const ParamTree& p, const Inputs& in, const ApplyOptions& o) const {
    return with_python([&] {
      const py::object y = object_->attr(function)(p, in, o);
      if (!py::isinstance<Tensor>(y))
        throw PythonError(fmt::format("it returned {}; expected a tensor",
                                      py::cast<std::string>(py::str(py::type::of(y).attr("__name__")))));
      return py::cast<Tensor>(y);
    });
  }

  Held object_;
  std::vector<std::string> cache_forms_, own_;
  std::vector<i64> windows_;
};

// A member of inputs that may be undefined: None.
template <class Inputs>
void add_member(py::class_<Inputs>& c, const char* name, Tensor Inputs::*member) {
  c.def_property(
      name,
      [member](const Inputs& in) -> std::optional<Tensor> {
        return (in.*member).defined() ? std::optional(in.*member) : std::nullopt;
      },
      [member](Inputs& in, const std::optional<Tensor>& t) { in.*member = t.value_or(Tensor()); });
}

}  // namespace

std::unique_ptr<Model> make_python_model(const Held& klass, ModelConfig& config) {
  return with_python(
      [&]() -> std::unique_ptr<Model> { return std::make_unique<PythonModel>(*klass, config); });
}

void bind_families(py::module_& m) {
  py::class_<ConfigHandle, std::shared_ptr<ConfigHandle>>(m, "_ModelConfig")
      .def("has", [](const ConfigHandle& c, const std::string& key) { return (*c).has(key); })
      .def("mentions", [](const ConfigHandle& c, const std::string& key) { return (*c).mentions(key); })
      .def("require", [](const ConfigHandle& c, const std::string& key) { return (*c).require(key); })
      .def("integer", [](const ConfigHandle& c, const std::string& key) { return (*c).integer(key); })
      .def("labels", [](const ConfigHandle& c) { return (*c).labels(); })
      .def("value",
           [](const ConfigHandle& c, const std::string& key) { return glue("loads")((*c).json(key)); })
      .def("fail",
           [](const ConfigHandle& c, const std::string& key, const std::string& why) { (*c).fail(key, why); })
      .def("finish", [](const ConfigHandle& c) { (*c).finish(); });

  py::class_<DecoderInputs> decoder(m, "DecoderInputs", "Inputs of decode(). Absent ones are None.");
  add_member(decoder, "input_ids", &DecoderInputs::input_ids);
  add_member(decoder, "positions", &DecoderInputs::positions);
  add_member(decoder, "key_mask", &DecoderInputs::key_mask);
  add_member(decoder, "memory", &DecoderInputs::memory);
  add_member(decoder, "memory_mask", &DecoderInputs::memory_mask);
  py::class_<EncoderInputs> encoder(m, "EncoderInputs", "Inputs of encode_outputs(). Absent ones are None.");
  add_member(encoder, "input_ids", &EncoderInputs::input_ids);
  add_member(encoder, "key_mask", &EncoderInputs::key_mask);
  add_member(encoder, "token_type_ids", &EncoderInputs::token_type_ids);
  add_member(encoder, "pixel_values", &EncoderInputs::pixel_values);
  add_member(encoder, "features", &EncoderInputs::features);
  add_member(encoder, "positions", &EncoderInputs::positions);
  add_member(encoder, "memory", &EncoderInputs::memory);
}

}  // namespace redco::python

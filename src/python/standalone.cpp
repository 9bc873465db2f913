// redco in a plain Python: one rank, made at the first use.
#include "assembly/assembly.h"
#include "assembly/job_params.h"
#include "config/bind.h"
#include "generate/generate.h"
#include "job/job_config.h"
#include "kernels/threads.h"
#include "pipelines/text_generation.h"
#include "python/bindings.h"

namespace redco::python {

void ensure_context() {
  if (Context::has_current()) return;
  // Never freed: tensors may live until the process ends.
  static auto& context = *new Context(Mesh(1, 1), make_self_group());
  static thread_local Context::Use* use = nullptr;
  if (!use) use = new Context::Use(context);
}

namespace {

// A model's folder in memory.
struct Loaded {
  JobConfig job;
  Assembly parts;
  ParamTree params;
};

std::shared_ptr<Loaded> load(const std::string& path, const std::vector<std::string>& overrides) {
  ensure_context();
  auto out = std::make_shared<Loaded>();
  std::vector<std::string> keys = overrides;
  keys.push_back("model.path=" + path);
  out->job = load_job({}, keys);
  out->parts = assemble(out->job);
  out->params = make_job_params(out->job, out->parts.source, out->parts.model.get(),
                                out->parts.model->params(), inference_storage(out->job));
  return out;
}

std::vector<std::string> answers(const Loaded& m, const std::vector<std::vector<i32>>& prompts,
                                 const py::dict& given) {
  GenerationSettings settings;
  load_section(settings_of(settings), "generation", SectionText(py::cast<std::string>(glue("dumps")(given))),
               {});
  const py::gil_scoped_release unlocked;
  std::vector<GenerationPrompt> asked;
  for (const auto& ids : prompts) asked.push_back({ids, static_cast<i64>(asked.size())});
  const GenerationTokens tokens = generation_tokens(m.parts.source.folder, m.parts.model->config_json(),
                                                    "the model", m.parts.tokenizer.get());
  std::vector<std::string> out;
  for (const auto& group : generate(*m.parts.model, m.params, asked, settings, tokens))
    out.push_back(m.parts.tokenizer ? m.parts.tokenizer->decode(group.at(0).ids, true) : "");
  return out;
}

}  // namespace

void bind_standalone(py::module_& m) {
  py::class_<Loaded, std::shared_ptr<Loaded>>(m, "_Loaded")
      .def_property_readonly(
          "model", [](const Loaded& l) { return l.parts.model.get(); },
          py::return_value_policy::reference_internal)
      .def_property_readonly(
          "tokenizer", [](const Loaded& l) { return l.parts.tokenizer.get(); },
          py::return_value_policy::reference_internal)
      .def_readwrite("params", &Loaded::params)
      .def("_generate", &answers);
  m.def("_load", &load, Free());
  m.def("ensure_context", &ensure_context);
  m.def(
      "set_threads", [](int n) { kernels::set_threads(n); }, "n"_a);
}

}  // namespace redco::python

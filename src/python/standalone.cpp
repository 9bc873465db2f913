// redco in a plain Python: one rank, made at the first use.
#include "assembly/assembly.h"
#include "assembly/job_params.h"
#include "assembly/job_pipeline.h"
#include "assembly/predict_model.h"
#include "config/bind.h"
#include "generate/generate.h"
#include "job/job_config.h"
#include "kernels/threads.h"
#include "pipelines/text_generation.h"
#include "python/bindings.h"
#include "train/predictor.h"

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
  std::shared_ptr<ChatTemplate> chat_template;                 // null: none
  std::map<std::string, std::unique_ptr<Pipeline>> pipelines;  // by name, made at the first use
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
  if (auto chat = ChatTemplate::load(out->parts.source.folder))
    out->chat_template = std::make_shared<ChatTemplate>(std::move(*chat));
  return out;
}

// The answers to prompts of ids, as predict_text() gives them. on_text: None, or a function that gets the
// pieces of the text of one answer.
std::vector<std::string> answers(const Loaded& m, const std::vector<std::vector<i32>>& prompts,
                                 const py::dict& given, const py::object& on_text) {
  if (!m.parts.tokenizer) throw UsageError("the folder has no tokenizer: give load(..., tokenizer=FOLDER)");
  const Model& model = *m.parts.model;
  if (!model.generates_text())
    throw UsageError("a {} model is for {}: it generates no text", model.family(), name_of(model.task()));
  TextGeneration g;
  load_section(settings_of(g.settings), "generation",
               SectionText(py::cast<std::string>(glue("dumps")(given))), {});
  g.tokens = answer_tokens(m.parts.source, model, *m.parts.tokenizer, m.chat_template.get());
  std::vector<Example> asked;
  for (const auto& ids : prompts) {
    Example e;
    e.ids["prompt"] = ids;
    e.ordinal = static_cast<i64>(asked.size());
    asked.push_back(std::move(e));
  }
  StepContext ctx;
  if (!on_text.is_none()) ctx.on_text = callback<void, std::string_view>(on_text);
  const py::gil_scoped_release unlocked;
  std::function<Memory(std::span<const i64>)> encode;
  if (model.is_encoder_decoder())
    encode = [&](std::span<const i64> which) { return encode_text(model, m.params, asked, which, "prompt"); };
  return predict_text(model, *m.parts.tokenizer, m.params, asked, g, ctx, encode);
}

// The answers of a built-in pipeline to records: lines of predict.input.
std::vector<std::string> predicted(Loaded& m, const std::string& name,
                                   const std::vector<std::string>& records) {
  const py::gil_scoped_release unlocked;
  std::unique_ptr<Pipeline>& p = m.pipelines[name];
  if (!p) {
    JobConfig job = m.job;
    job.pipeline = name;
    p = make_job_pipeline(job, m.parts.model.get(), m.parts.tokenizer.get(), {}, m.parts.source.folder);
    p->params();  // it refuses a model of another task
  }
  std::vector<Example> asked;
  for (const std::string& record : records) {
    const auto i = static_cast<i64>(asked.size());
    auto e = p->request(record, fmt::format("record {}", i + 1));
    if (!e) throw UsageError("pipeline {} continues prompts: use generate()", name);
    e->ordinal = i;
    asked.push_back(std::move(*e));
  }
  return predict(*p, m.params, asked, 16);
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
      .def_property_readonly("chat_template",
                             [](const Loaded& l) -> py::object {
                               return l.chat_template ? py::cast(l.chat_template) : py::none();
                             })
      .def("_generate", &answers)
      .def("_predict", &predicted);
  m.def("_load", &load, Free());
  m.def("ensure_context", &ensure_context);
  m.def(
      "set_threads", [](int n) { kernels::set_threads(n); }, "n"_a);
}

}  // namespace redco::python

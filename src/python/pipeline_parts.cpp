// What a Python pipeline reads of its job, and the helpers that belong to a pipeline.
#include <nlohmann/json.hpp>

#include "chat/chat_template.h"
#include "pipeline/token_rows.h"
#include "pipelines/text_generation.h"
#include "python/script.h"
#include "python/settings.h"

namespace redco::python {

namespace {

// `with ctx.scope(name, k):`
struct Scope {
  SharedText before, inside;
  bool entered = false;
};

// `with redco.no_grad():`
struct Recording {
  bool before = false;
};

py::dict load_settings(const JobHandle& job, const py::list& specs) {
  const SectionText& section = job.pipeline->settings->own;
  return read_settings(specs, "settings", section, section.origins);
}

// The job's generation settings, with others in their place.
TextGeneration generation_of(const JobHandle& job, const py::dict& given) {
  TextGeneration g = job.pipeline->settings->generation;
  if (given.contains("batch_size")) {
    g.batch_size = py::cast<i64>(given["batch_size"]);
    given.attr("pop")("batch_size");
  }
  load_section(settings_of(g.settings), "generation",
               SectionText(py::cast<std::string>(glue("dumps")(given))), {});
  return g;
}

// The memory of these examples, of encode(examples) -> states or (states, mask); None: the model is a
// decoder.
std::function<Memory(std::span<const i64>)> memory_by(const py::object& encode,
                                                      const std::vector<Example>& asked) {
  if (encode.is_none()) return {};
  return [&asked, held = hold(encode)](std::span<const i64> which) {
    return with_python([&] {
      std::vector<Example> rows;
      for (const i64 i : which) rows.push_back(asked[static_cast<std::size_t>(i)]);
      const py::object made = (*held)(from_examples(rows));
      if (py::isinstance<Tensor>(made)) return Memory{py::cast<Tensor>(made), {}};
      const py::tuple pair = py::cast<py::tuple>(made);
      return Memory{py::cast<Tensor>(pair[0]), elements<i32>(glue("ints")(pair[1]))};
    });
  };
}

template <class T>
py::object or_none(const JobPart<T>& part) {
  return part ? py::cast(static_cast<const T*>(part), py::return_value_policy::reference) : py::none();
}

void bind_context(py::module_& m) {
  py::class_<Scope>(m, "_Scope")
      .def("__enter__",
           [](Scope& s) {
             SharedText& place = Context::current().random_scope;
             s.before = place;
             place = s.inside;
             s.entered = true;
           })
      .def("__exit__", [](Scope& s, const py::args&) { Context::current().random_scope = s.before; });
  py::class_<Recording>(m, "no_grad", "`with redco.no_grad():` what is computed inside has no derivatives.")
      .def(py::init<>())
      .def("__enter__", [](Recording& r) { r.before = std::exchange(Context::current().recording, false); })
      .def("__exit__", [](Recording& r, const py::args&) { Context::current().recording = r.before; });
  py::class_<StepContext>(m, "StepContext")
      .def_readonly("apply", &StepContext::apply)
      .def_readonly("step", &StepContext::step)
      .def_readonly("epoch", &StepContext::epoch)
      .def_readonly("total_steps", &StepContext::total_steps,
                    "Of the whole run; 0: no training, or unknown in the first source().")
      .def_readonly("logged", &StepContext::logged)
      .def(
          "options",
          [](const StepContext& c, const py::kwargs& given) { return with_options(c.apply, given); },
          "ctx.apply with other options, those of ApplyOptions: ctx.options(causal=False).")
      .def_property_readonly("train", [](const StepContext& c) { return c.apply.train; })
      .def(
          "scope",
          [](const StepContext& c, const std::string& name, i64 k) {
            Scope s;
            SharedText& place = Context::current().random_scope;
            const auto inside = c.scope(name, k);
            s.inside = place;
            return s;
          },
          "name"_a, "k"_a = 0, "`with ctx.scope(name, k):` other random draws in another pass.")
      .def(
          "add_sum", &StepContext::add_sum, "name"_a, "part"_a, Free(),
          "Adds a tensor to a sum over all rows of the step, which after_update() reads in ctx.sums: how often each "
          "code of a codebook is used, statistics of a batch norm. For loss() and embed() in training.")
      .def_property_readonly(
          "sums", [](const StepContext& c) { return c.sums ? *c.sums : std::map<std::string, Tensor>(); },
          "In after_update(): the sums of ctx.add_sum() over the step.")
      .def("agree", &StepContext::agree, "tensor"_a, Free(),
           "The first rank's value of a one-element tensor, for branches on data.")
      .def(
          "rng",
          [](const StepContext& c, const std::string& name) {
            return glue("rng")(Context::current().random.seed, name, c.step, c.epoch);
          },
          "name"_a, "A NumPy generator with the key of (seed, name, step, epoch): the same on all ranks.")
      .def(
          "on_first",
          [](const StepContext&, const py::function& f) {
            std::string text;
            Group& world = Context::current().world();
            {
              const py::gil_scoped_release unlocked;
              world.on_first(
                  [&] { text = with_python([&] { return py::cast<std::string>(glue("dumps")(f())); }); });
              text = world.agree(text);
            }
            return glue("loads")(text);
          },
          "f"_a, "f() of the first rank, on all ranks: what may differ between them. The result is JSON.");
}

void bind_handle(py::module_& m) {
  py::class_<NamedModel>(m, "NamedModel")
      .def_property_readonly("model", [](const NamedModel& n) { return or_none(n.model); })
      .def_property_readonly("tokenizer", [](const NamedModel& n) { return or_none(n.tokenizer); });
  py::class_<DataRequest>(m, "DataRequest")
      .def_readonly("evaluation", &DataRequest::evaluation)
      .def_readonly("files", &DataRequest::files)
      .def_readonly("max_length", &DataRequest::max_length);
  py::class_<Rollout>(m, "Rollout")
      .def_readonly("ids", &Rollout::ids)
      .def_readonly("text", &Rollout::text)
      .def_readonly("log_probs", &Rollout::log_probs)
      .def_readonly("finish_reason", &Rollout::finish_reason);

  const auto job = [](const JobHandle& h) -> const PipelineSettings& { return *h.pipeline->settings; };
  py::class_<JobHandle, std::shared_ptr<JobHandle>> h(m, "_Job");
  h.def_property_readonly("model", [](const JobHandle& x) { return or_none(x.pipeline->model); })
      .def_property_readonly("tokenizer", [](const JobHandle& x) { return or_none(x.pipeline->tokenizer); })
      .def_property_readonly("models",
                             [](const JobHandle& x) {
                               py::dict out;
                               for (const auto& [name, n] : x.pipeline->models)
                                 out[name.c_str()] = py::cast(&n, py::return_value_policy::reference);
                               return out;
                             })
      .def_property_readonly(
          "train_data",
          [](const JobHandle& x) { return std::shared_ptr<const Dataset>(x.pipeline->train_data); })
      .def_property_readonly("chat_template",
                             [job](const JobHandle& x) -> py::object {
                               const auto& c = job(x).chat_template;
                               return c ? py::cast(std::const_pointer_cast<ChatTemplate>(c)) : py::none();
                             })
      .def_property_readonly("seed", [job](const JobHandle& x) { return job(x).train.seed; })
      .def_property_readonly("max_length", [job](const JobHandle& x) { return job(x).data.max_length; })
      .def_property_readonly("label_smoothing",
                             [job](const JobHandle& x) { return job(x).train.label_smoothing; })
      .def_property_readonly("global_batch_size",
                             [job](const JobHandle& x) { return job(x).train.global_batch_size; })
      .def_property_readonly("n_epochs", [job](const JobHandle& x) { return job(x).train.n_epochs; })
      .def_property_readonly("max_steps", [job](const JobHandle& x) { return job(x).train.max_steps; })
      .def_property_readonly("max_new_tokens",
                             [job](const JobHandle& x) { return job(x).generation.settings.max_new_tokens; })
      .def_property_readonly("weights_folder", [job](const JobHandle& x) { return job(x).weights_folder; })
      .def_property_readonly("model_folder", [job](const JobHandle& x) { return job(x).model_folder; })
      .def("load_settings", &load_settings)
      .def("reference",
           [](const JobHandle& x, const ParamTree& params) {
             const FixedModel f = reference_model(*x.pipeline, params);
             return py::make_tuple(py::cast(&f.model, py::return_value_policy::reference), f.params);
           })
      .def("predict_text",
           [](const JobHandle& x, const ParamTree& params, const py::list& examples, const StepContext& ctx,
              const py::dict& given, const py::object& encode) {
             const TextGeneration g = generation_of(x, given);
             const std::vector<Example> asked = to_examples(examples);
             const auto memory = memory_by(encode, asked);
             const py::gil_scoped_release unlocked;
             return predict_text(*x.pipeline->model, *x.pipeline->tokenizer, params, asked, g, ctx, memory);
           })
      .def("sample",
           [](const JobHandle& x, const ParamTree& params, const std::vector<std::vector<i32>>& prompts,
              i64 first_ordinal, const py::dict& given) {
             const TextGeneration g = generation_of(x, given);
             const py::gil_scoped_release unlocked;
             return sample(*x.pipeline, params, prompts, g, first_ordinal);
           })
      .def("score_examples",
           [](const JobHandle&, const ParamTree& params, const py::list& examples, i64 batch_size,
              const py::object& f) {
             const std::vector<Example> rows = to_examples(examples);
             const Score score = [held = hold(f)](const ParamTree& p, std::span<const Example> mine,
                                                  const BatchShape& shape) {
               return with_python([&] { return py::cast<Tensor>((*held)(p, from_examples(mine), shape)); });
             };
             const py::gil_scoped_release unlocked;
             return score_examples(params, rows, batch_size, score);
           })
      .def("token_rows",
           [](const JobHandle& x, const BatchShape& shape,
              const std::vector<std::pair<std::vector<i32>, i64>>& rows, const std::string& prefix) {
             std::vector<TokenRow> mine;
             if (!Context::current().is_meta())
               for (const auto& [ids, first] : rows) mine.push_back({ids, first});
             Batch b;
             b.shape = shape;
             const double n = add_token_rows(b, *x.pipeline->model, mine, prefix);
             return py::make_tuple(b.fields, n);
           })
      .def("prompt_ids",
           [](const JobHandle& x, const std::string& text) {
             return prompt_ids(*x.pipeline->tokenizer, Record("{}", "the prompt"), text);
           })
      // Functions of the built-in pipeline that the class is derived from.
      .def("base_loss",
           [](const JobHandle& x, const ParamTree& p, const Batch& b, const StepContext& ctx) {
             LossTerms terms;
             {
               const py::gil_scoped_release unlocked;
               terms = x.synced().loss(p, b, ctx);
             }
             py::dict out;
             for (const LossTerm& t : terms) out[t.name.c_str()] = t.sum;
             return out;
           })
      .def("base_collate",
           [](const JobHandle& x, const py::list& examples, const BatchShape& shape) {
             const Batch b = x.synced().collate(to_examples(examples), shape);
             return py::make_tuple(b.fields, b.weights);
           })
      .def("base_predict",
           [](const JobHandle& x, const ParamTree& p, const py::list& examples, const StepContext& ctx) {
             const std::vector<Example> asked = to_examples(examples);
             const py::gil_scoped_release unlocked;
             return x.synced().predict(p, asked, ctx);
           })
      .def("base_metrics", [](const JobHandle& x, const std::map<std::string, double>& means) {
        return x.synced().metrics(means);
      });
}

}  // namespace

void bind_pipeline(py::module_& m) {
  bind_context(m);
  bind_handle(m);
  m.def("verified_reward", &verified_reward, "kind"_a, "answer"_a, "expected"_a,
        "1 if the answer is right: exact_match, number or contains.");
  m.def("group_advantages", &group_advantages, "rewards"_a, "scaled"_a = true);
}

}  // namespace redco::python

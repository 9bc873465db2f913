#include "python/script.h"

#include "config/bind.h"
#include "pipelines/pipelines.h"
#include "python/plugins.h"

namespace redco::python {

Pipeline& JobHandle::synced() const {
  base->model = pipeline->model;
  base->tokenizer = pipeline->tokenizer;
  base->models = pipeline->models;
  base->settings = pipeline->settings;
  base->train_data = pipeline->train_data;
  base->eval_sets = pipeline->eval_sets;
  return *base;
}

Script::Script(const std::string& path) : path_(path) {
  // (object, names of the functions that its class defines, built-in base or "", hash of the code, embedding)
  const py::tuple loaded = py::cast<py::tuple>(glue("load")(path));
  object_ = hold(loaded[0]);
  for (const py::handle& name : loaded[1]) defined_.insert(py::cast<std::string>(name));
  if (const std::string base = py::cast<std::string>(loaded[2]); !base.empty())
    job_->base = make_pipeline(base);
  code_hash_ = py::cast<std::string>(loaded[3]);
  embedding_ = py::cast<bool>(loaded[4]);
}

void Script::attach(Pipeline& pipeline) {
  job_->pipeline = &pipeline;
  object_->attr("_cpp") = py::cast(job_);
}

void Script::prepare() const {
  if (checked_) return;
  checked_ = true;
  with_python([&] { glue("prepare")(*object_); });
}

void Script::seed(const std::string& name, i64 number) const {
  with_python([&] { glue("seed")(job_->pipeline->settings->train.seed, name, number); });
}

LossTerms to_terms(const py::object& result) {
  LossTerms out;
  for (const py::handle& item : glue("terms")(result)) {
    const py::tuple pair = py::cast<py::tuple>(item);
    out.push_back({py::cast<std::string>(pair[0]), py::cast<Tensor>(pair[1])});
  }
  return out;
}

namespace {

OptimizerSettings to_optimizer(const std::string& name, const py::dict& given) {
  py::dict left = given.attr("copy")();
  const auto number = [&](const char* key, auto& place) {
    if (!left.contains(key)) return;
    place = py::cast<std::decay_t<decltype(place)>>(left[key]);
    left.attr("pop")(key);
  };
  OptimizerSettings out;
  if (name == "adamw") {
    AdamWSettings s;
    number("beta1", s.beta1);
    number("beta2", s.beta2);
    number("epsilon", s.epsilon);
    number("weight_decay", s.weight_decay);
    number("decay_norms_and_biases", s.decay_norms_and_biases);
    out = s;
  } else if (name == "sgd") {
    SgdSettings s;
    number("momentum", s.momentum);
    number("weight_decay", s.weight_decay);
    number("decay_norms_and_biases", s.decay_norms_and_biases);
    out = s;
  } else {
    throw UsageError("[pipeline] optimizer '{}' of a parameter group: expected adamw or sgd", name);
  }
  if (!left.empty())
    throw UsageError(
        "[pipeline] optimizer {} of a parameter group has no setting {}; docs/optimizers.md lists them", name,
        py::cast<std::string>(py::str(", ").attr("join")(left)));
  return out;
}

}  // namespace

std::vector<ParamGroup> to_groups(const py::object& list) {
  std::vector<ParamGroup> out;
  for (const py::handle& x : py::list(glue("group_list")(list))) {
    ParamGroup g;
    g.name = py::cast<std::string>(x.attr("name"));
    g.has = callback<bool, const std::string&>(x.attr("_has"));
    g.term = py::cast<std::string>(x.attr("term"));
    g.plus = py::cast<std::vector<std::pair<std::string, double>>>(x.attr("_plus"));
    g.learning_rate_factor = py::cast<double>(x.attr("learning_rate_factor"));
    if (const py::object f = x.attr("learning_rate"); !f.is_none())
      g.learning_rate = callback<double, i64, double>(f);
    g.clip_grad_norm = py::cast<std::optional<double>>(x.attr("clip_grad_norm"));
    g.period = py::cast<i64>(x.attr("period"));
    if (const py::object f = x.attr("_ema_of"); !f.is_none())
      g.ema_of = callback<std::string, const std::string&>(f);
    if (const py::object tau = x.attr("tau"); PyCallable_Check(tau.ptr()))
      g.tau_of = callback<double, i64>(tau);
    else
      g.tau = py::cast<double>(tau);
    if (const py::object o = x.attr("_optimizer"); glue("is_optimizer")(o).cast<bool>()) {
      g.optimizer = rule_of(o);
    } else if (!o.is_none()) {
      const py::tuple pair = py::cast<py::tuple>(o);
      g.optimizer = to_optimizer(py::cast<std::string>(pair[0]), py::cast<py::dict>(pair[1]));
    }
    out.push_back(std::move(g));
  }
  return out;
}

std::map<std::string, double> to_numbers(const py::object& dict) {
  return py::cast<std::map<std::string, double>>(glue("numbers")(dict));
}

StepLog to_step_log(const py::object& dict) {
  StepLog out;
  if (dict.is_none()) return out;
  const py::tuple parts = glue("step_log")(dict);
  out.values = py::cast<std::map<std::string, double>>(parts[0]);
  for (const auto& [name, array] : py::cast<py::dict>(parts[1]))
    out.histograms[py::cast<std::string>(name)] = elements<float>(array);
  return out;
}

}  // namespace redco::python

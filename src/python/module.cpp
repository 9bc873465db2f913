#include "pipeline/load_python.h"
#include "python/bindings.h"
#include "python/plugins.h"
#include "python/python_pipeline.h"

PYBIND11_MODULE(_redco, m) {
  using namespace redco::python;
  m.doc() = "The part of the package redco that is written in C++.";
  bind_errors(m);
  bind_tensor(m);
  bind_apply_options(m);
  bind_params(m);
  bind_models(m);
  bind_examples(m);
  bind_ops(m);
  bind_more_ops(m);
  bind_pipeline(m);
  bind_standalone(m);
  bind_environments(m);
  bind_stacked(m);
  bind_layers(m);
  bind_plugins(m);
  redco::set_python_functions({.pipeline = &make_python_pipeline, .plugin = &load_plugin});
}

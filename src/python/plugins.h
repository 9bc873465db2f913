// Plugins in Python: optimizers by rule and model families.
#pragma once

#include <string>

#include "pipeline/load_python.h"
#include "python/bindings.h"

namespace redco::python {

// Runs the file and makes its classes known (add_optimizer(), add_family()). Takes Python's lock.
PythonPlugin load_plugin(const std::string& path);

// The settings of a rule that is an object of redco.Optimizer, for a parameter group.
RuleSettings rule_of(const py::object& optimizer);

// An object of `klass`, derived from redco.ModelFamily, as a model. Takes Python's lock.
std::unique_ptr<Model> make_python_model(const Held& klass, ModelConfig& config);

void bind_families(py::module_& m);

}  // namespace redco::python

// The C++ object of a pipeline in Python.
#pragma once

#include <memory>
#include <string>

#include "pipeline/pipeline.h"

namespace redco::python {

// Runs the script. Takes Python's lock.
std::unique_ptr<Pipeline> make_python_pipeline(const std::string& path);

}  // namespace redco::python

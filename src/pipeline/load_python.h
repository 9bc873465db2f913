// Pipelines in Python: `pipeline: ./mine.py`. They run in libredco_python.so, in the folder of
// libredco.so. It is loaded when the first one is needed; redco itself never links Python.
#pragma once

#include <memory>
#include <string>

#include "pipeline/pipeline.h"

namespace redco {

// In the text of the error of a plan that lacks an example of the pipeline's own kind.
inline constexpr const char* kDefinePlanExample = "Give it one: define plan_example";

inline bool is_python_pipeline(const std::string& name) { return name.ends_with(".py"); }

// Runs the script and creates its pipeline. UsageError: no such file, no library for Python (with the
// packages to install), an error in the script (with its lines), no class derived from redco.Pipeline.
std::unique_ptr<Pipeline> load_python_pipeline(const std::string& path);

// For a script in a process of its own: the Python that redco was built for (that of an activated virtual
// environment, if it has the same version), and the folder of the package redco. UsageError: no library for
// Python.
struct PythonProgram {
  std::string program, packages;
};
PythonProgram python_program();

}  // namespace redco

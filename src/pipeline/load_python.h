// Users' code in Python: pipelines (`pipeline: ./mine.py`), and plugins with optimizers and model families.
// It runs in libredco_python.so, in the folder of libredco.so. It is loaded when the first file is needed;
// redco itself never links Python.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "pipeline/pipeline.h"

namespace redco {

inline constexpr const char* kDefinePlanExample = "Give it one: define plan_example";

// A plan lacks an example of the pipeline's own kind. A training does not need one.
class NoPlanError : public UsageError {
 public:
  using UsageError::UsageError;
};

inline bool is_python_file(const std::string& name) { return name.ends_with(".py"); }

// Runs the script and creates its pipeline. UsageError: no such file, no library for Python (with the
// packages to install), an error in the script (with its lines), no class derived from redco.Pipeline.
std::unique_ptr<Pipeline> load_python_pipeline(const std::string& path);

// What a Python file adds to redco: its classes derived from redco.Optimizer and redco.ModelFamily.
struct PythonPlugin {
  std::string fingerprint;  // of the file, and of the modules of its folder that it imports
  std::vector<std::string> families, optimizers;
};
// Runs the file and makes its classes known for the rest of the process. UsageError: as above; it has no such
// class, or a name is taken.
PythonPlugin load_python_plugin(const std::string& path);

// The functions of the module redco._redco, which sets them when it is imported: by libredco_python.so in a
// rank, or by a Python program.
struct PythonFunctions {
  std::unique_ptr<Pipeline> (*pipeline)(const std::string& path) = nullptr;
  PythonPlugin (*plugin)(const std::string& path) = nullptr;
};
void set_python_functions(const PythonFunctions& functions);

// For a script in another process: the Python that redco was built for (that of an activated virtual
// environment, if it has the same version), and the folder of the package redco. UsageError: no library for
// Python.
struct PythonProgram {
  std::string program, packages;
};
PythonProgram python_program();

}  // namespace redco

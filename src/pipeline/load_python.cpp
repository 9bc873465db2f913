#include "pipeline/load_python.h"

#include <dlfcn.h>

#include <filesystem>
#include <mutex>

#include "base/error.h"
#include "base/file.h"
#include "base/user_code.h"

namespace redco {

namespace {

constexpr const char* kLibrary = "libredco_python.so";

// The folder of libredco.so.
std::string library_folder() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<const void*>(&load_python_pipeline), &info) || !info.dli_fname) return "";
  return std::filesystem::weakly_canonical(info.dli_fname).parent_path().string();
}

void* python_library() {
  static void* const library = [] {
    const std::string path = join_path(library_folder(), kLibrary);
    if (!exists(path))
      throw UsageError(
          "[pipeline] this redco was built without Python, so it can't run Python: {} is missing. "
          "Install python3-dev, pybind11-dev and python3-numpy (Debian's names), and build redco again",
          path);
    // Extension modules of Python find the interpreter's functions among the global ones.
    void* so = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (!so) throw UsageError("[pipeline] {} can't be loaded: {}", path, dlerror());
    return so;
  }();
  return library;
}

template <class F>
F python_function(const char* name) {
  return reinterpret_cast<F>(dlsym(python_library(), name));
}

PythonFunctions& functions_set() {
  static auto& functions = *new PythonFunctions;
  return functions;
}

// Starts Python if it does not run yet.
const PythonFunctions& python_functions() {
  static auto& started = *new std::once_flag;
  std::call_once(started, [] {
    if (!functions_set().pipeline) python_function<void (*)()>("redco_python_start")();
  });
  return functions_set();
}

}  // namespace

void set_python_functions(const PythonFunctions& functions) { functions_set() = functions; }

std::unique_ptr<Pipeline> load_python_pipeline(const std::string& path) {
  if (!exists(path))
    throw UsageError(
        "[pipeline] {} does not exist. Set pipeline to a Python file, a shared object or a built-in "
        "pipeline",
        path);
  std::unique_ptr<Pipeline> pipeline =
      in_user_code(pipeline_code(path, "loading it"), [&] { return python_functions().pipeline(path); });
  pipeline->origin = path;
  return pipeline;
}

PythonPlugin load_python_plugin(const std::string& path) {
  return in_user_code(
      [path](const std::string& why) { return fmt::format("[plugins] loading {} failed{}", path, why); },
      [&] { return python_functions().plugin(path); });
}

PythonProgram python_program() {
  const std::string both = python_function<const char* (*)()>("redco_python_program")();
  const std::size_t end = both.find('\n');
  return {both.substr(0, end), both.substr(end + 1)};
}

}  // namespace redco

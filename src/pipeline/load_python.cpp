#include "pipeline/load_python.h"

#include <dlfcn.h>

#include <filesystem>

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

}  // namespace

std::unique_ptr<Pipeline> load_python_pipeline(const std::string& path) {
  if (!exists(path))
    throw UsageError(
        "[pipeline] {} does not exist. Set pipeline to a Python file, a shared object or a built-in "
        "pipeline",
        path);
  const auto make = python_function<Pipeline* (*)(const char*)>("redco_python_pipeline");
  std::unique_ptr<Pipeline> pipeline(
      in_user_code(pipeline_code(path, "loading it"), [&] { return make(path.c_str()); }));
  pipeline->origin = path;
  return pipeline;
}

PythonProgram python_program() {
  const std::string both = python_function<const char* (*)()>("redco_python_program")();
  const std::size_t end = both.find('\n');
  return {both.substr(0, end), both.substr(end + 1)};
}

}  // namespace redco

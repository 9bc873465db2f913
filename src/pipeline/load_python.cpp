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

using MakePipeline = Pipeline* (*)(const char* path);

MakePipeline python_library() {
  static const MakePipeline make = [] {
    const std::string path = join_path(library_folder(), kLibrary);
    if (!exists(path))
      throw UsageError(
          "[pipeline] this redco was built without Python, so it can't run pipelines in Python: {} is missing. "
          "Install python3-dev, pybind11-dev and python3-numpy (Debian's names), and build redco again",
          path);
    // Extension modules of Python find the interpreter's functions among the global ones.
    void* so = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (!so) throw UsageError("[pipeline] {} can't be loaded: {}", path, dlerror());
    return reinterpret_cast<MakePipeline>(dlsym(so, "redco_python_pipeline"));
  }();
  return make;
}

}  // namespace

std::unique_ptr<Pipeline> load_python_pipeline(const std::string& path) {
  if (!exists(path))
    throw UsageError(
        "[pipeline] {} does not exist. Set pipeline to a Python file, a shared object or a built-in "
        "pipeline",
        path);
  const MakePipeline make = python_library();
  std::unique_ptr<Pipeline> pipeline(
      in_user_code(pipeline_code(path, "loading it"), [&] { return make(path.c_str()); }));
  pipeline->origin = path;
  return pipeline;
}

}  // namespace redco

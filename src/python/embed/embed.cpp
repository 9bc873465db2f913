// libredco_python.so: starts a Python interpreter in a rank, and imports the module redco._redco, which makes
// its functions known (pipeline/load_python.h). It alone links Python's library.
#include <Python.h>
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/error.h"

namespace {

namespace fs = std::filesystem;

// The folder with the package redco: of an installed redco, of a build folder, or of site-packages, where
// this library is in redco/lib.
std::string package_folder() {
  Dl_info info{};
  dladdr(reinterpret_cast<const void*>(&package_folder), &info);
  const fs::path here = fs::weakly_canonical(info.dli_fname).parent_path();
  for (const fs::path& p :
       {here / "redco" / "python", here.parent_path() / "python", here.parent_path().parent_path()})
    if (fs::exists(p / "redco" / "__init__.py")) return p.string();
  throw redco::UsageError("[pipeline] the Python package redco is missing near {}. Install redco again",
                          info.dli_fname);
}

std::string error_text() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  PyObject* text = value ? PyObject_Str(value) : nullptr;
  const char* utf8 = text ? PyUnicode_AsUTF8(text) : nullptr;
  const std::string out = utf8 ? utf8 : "an unknown error";
  PyErr_Clear();
  return out;
}

void check(const PyStatus& status, const char* what) {
  if (PyStatus_Exception(status))
    throw redco::UsageError("[pipeline] Python does not start: {}: {}", what,
                            status.err_msg ? status.err_msg : "unknown error");
}

void start() {
  PyConfig config;
  PyConfig_InitPythonConfig(&config);
  config.install_signal_handlers = 0;  // signals stay redco's
  config.parse_argv = 0;
  config.buffered_stdio = 0;  // what user code prints appears, however the process ends
  config.use_hash_seed = 1;   // sets and dicts have the same order on all ranks
  config.hash_seed = 0;
  check(PyConfig_SetBytesString(&config, &config.program_name, REDCO_PYTHON), "its program");
  check(Py_InitializeFromConfig(&config), "initialization");
  PyConfig_Clear(&config);
}

// The packages of an activated virtual environment of this version of Python; empty: there is none.
fs::path environment_packages() {
  const char* environment = std::getenv("VIRTUAL_ENV");
  if (!environment || !*environment) return {};
  const fs::path packages =
      fs::path(environment) / "lib" /
      ("python" + std::to_string(PY_MAJOR_VERSION) + "." + std::to_string(PY_MINOR_VERSION)) /
      "site-packages";
  return fs::exists(packages) ? packages : fs::path();
}

// Puts the script's rank in charge: redco then makes no context (redco/__init__.py). Folders in front
// of sys.path: the package redco, and the packages of an activated virtual environment.
void add_paths() {
  PySys_SetObject("_redco_embedded", Py_True);
  PyObject* path = PySys_GetObject("path");  // borrowed
  const auto add = [&](const std::string& folder, bool first) {
    PyObject* text = PyUnicode_DecodeFSDefault(folder.c_str());
    if (first)
      PyList_Insert(path, 0, text);
    else
      PyList_Append(path, text);
    Py_DECREF(text);
  };
  if (const fs::path packages = environment_packages(); !packages.empty()) add(packages.string(), true);
  add(package_folder(), true);  // before the package of another redco in the environment
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void redco_python_start() {
  if (!Py_IsInitialized()) {
    start();
    add_paths();
    PyEval_SaveThread();  // ranks take the lock when they call Python
  }
  const PyGILState_STATE lock = PyGILState_Ensure();
  PyObject* package = PyImport_ImportModule("redco");
  const std::string problem = package ? "" : error_text();
  PyGILState_Release(lock);
  if (!package)
    throw redco::UsageError(
        "[pipeline] Python can't import redco: {}. Python code of a job needs NumPy (Debian: python3-numpy) "
        "for Python {}.{}",
        problem, PY_MAJOR_VERSION, PY_MINOR_VERSION);
}

// The program and the folder of the package redco, in two lines.
extern "C" __attribute__((visibility("default"))) const char* redco_python_program() {
  static const std::string both = [] {
    std::string program = REDCO_PYTHON;
    if (!environment_packages().empty())
      program = (fs::path(std::getenv("VIRTUAL_ENV")) / "bin" / "python3").string();
    return program + "\n" + package_folder();
  }();
  return both.c_str();
}

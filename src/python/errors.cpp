#include <exception>
#include <typeinfo>

#include "pipeline/load_python.h"
#include "python/bindings.h"

namespace redco::python {

namespace {

// The classes of redco's errors in Python. Never freed: the interpreter may end first.
struct ErrorClasses {
  py::object error, usage, contents, io, bug;
};
ErrorClasses& error_classes() {
  static auto& classes = *new ErrorClasses;
  return classes;
}

// A Python exception that keeps the C++ error, so that it can be thrown again unchanged.
void set_error(const py::object& klass, const std::string& message, const std::exception_ptr& error) {
  const py::object value = klass(message);
  value.attr("_error") =
      py::capsule(new std::exception_ptr(error), [](void* p) { delete static_cast<std::exception_ptr*>(p); });
  PyErr_SetObject(klass.ptr(), value.ptr());
}

std::string text_of(const py::object& exception) {
  try {
    return py::cast<std::string>(glue("describe")(exception));
  } catch (py::error_already_set&) {
    return py::cast<std::string>(py::str(exception));
  }
}
std::string places_of(const py::object& exception) {
  try {
    return py::cast<std::string>(glue("places")(exception));
  } catch (py::error_already_set&) {
    return "";
  }
}

}  // namespace

py::object glue(const char* name) {
  // Under Python's lock, and never freed: the interpreter may end first. `name` is a literal.
  static auto& found = *new std::map<const char*, py::object>;
  const auto known = found.find(name);
  if (known != found.end()) return known->second;
  return found.emplace(name, py::module_::import("redco._glue").attr(name)).first->second;
}

void throw_from_python(py::error_already_set& e) {
  const py::object exception = e.value();
  if (e.trace()) PyException_SetTraceback(exception.ptr(), e.trace().ptr());
  if (!py::hasattr(exception, "_error")) throw PythonError(text_of(exception));
  const std::exception_ptr error =
      *static_cast<std::exception_ptr*>(py::cast<py::capsule>(exception.attr("_error")).get_pointer());
  const std::string places = places_of(exception);
  try {
    std::rethrow_exception(error);
  } catch (const BugError& bug) {
    throw PythonError(bug.found() + places);
  } catch (const NoPlanError&) {
    throw;
  } catch (const UsageError& usage) {
    throw UsageError("{}{}", usage.what(), places);
  } catch (const Error& other) {
    if (other.code() == ExitCode::non_finite) throw Error(other.code(), other.what() + places);
    throw;
  } catch (const PythonError& inner) {
    throw PythonError(inner.what() + places);
  }
}

void bind_errors(py::module_& m) {
  ErrorClasses& c = error_classes();
  const auto make = [&m](const char* name, const py::object& base, const char* doc) {
    py::object klass = py::reinterpret_steal<py::object>(
        PyErr_NewExceptionWithDoc((std::string("redco.") + name).c_str(), doc, base.ptr(), nullptr));
    m.attr(name) = klass;
    return klass;
  };
  c.error = make("Error", py::reinterpret_borrow<py::object>(PyExc_RuntimeError), "An error of redco.");
  c.usage = make("UsageError", c.error, "The job or a setting is wrong.");
  c.contents = make("ContentsError", c.error, "The contents of a file are wrong: raise it for a bad record.");
  c.io = make("IoError", c.error, "The system failed to read or write.");
  c.bug = make("ShapeError", c.error, "An op refused its arguments.");
  py::register_exception_translator([](std::exception_ptr p) {
    if (!p) return;
    const ErrorClasses& c = error_classes();
    try {
      std::rethrow_exception(p);
    } catch (const UsageError& e) {
      set_error(c.usage, e.what(), p);
    } catch (const ContentsError& e) {
      set_error(c.contents, e.what(), p);
    } catch (const IoError& e) {
      set_error(c.io, e.what(), p);
    } catch (const BugError& e) {
      set_error(c.bug, e.found(), p);
    } catch (const Error& e) {
      set_error(c.error, e.what(), p);
    } catch (const PythonError& e) {
      set_error(c.error, e.what(), p);
    }
  });
}

}  // namespace redco::python

// The Python module `redco._redco`: how C++ and Python call each other.
//
// Ops run without Python's lock (`Free`), because ranks may be threads of one process and collectives wait
// for all of them. C++ calls Python through with_python(), which takes the lock and turns exceptions into
// errors of redco that cite the user's lines.
#pragma once

#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "redco.h"

namespace redco::python {

namespace py = pybind11;
using namespace py::literals;

using Free = py::call_guard<py::gil_scoped_release>;

// An error in the user's Python code: the exception and the user's lines.
class PythonError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The C++ error of a Python exception: an error of redco stays what it is (a BugError, such as one of shapes,
// gets the user's lines); others are PythonErrors.
[[noreturn]] void throw_from_python(py::error_already_set& e);

// Calls f with Python's lock.
template <class F>
auto with_python(F&& f) {
  const py::gil_scoped_acquire lock;
  try {
    return f();
  } catch (py::error_already_set& e) {
    throw_from_python(e);
  }
}

// A reference to a Python object that may be dropped without Python's lock.
using Held = std::shared_ptr<py::object>;
inline Held hold(py::object x) {
  return {new py::object(std::move(x)), [](py::object* p) {
            const py::gil_scoped_acquire lock;
            delete p;
          }};
}

// A Python function as a C++ one.
template <class R, class... A>
std::function<R(A...)> callback(const py::object& f) {
  return [held = hold(f)](A... arguments) -> R {
    return with_python([&]() -> R {
      py::object result = (*held)(arguments...);
      if constexpr (!std::is_void_v<R>) return py::cast<R>(result);
    });
  };
}

// A function of redco/_glue.py.
py::object glue(const char* name);

// --- conversions ---
// Arrays are read by the buffer protocol and made by NumPy's constructor. pybind11's class of arrays reads
// NumPy's structures, and before 2.12 it does not know those of NumPy 2.

// The elements of a contiguous NumPy array of T.
template <class T>
std::vector<T> elements(py::handle array) {
  const py::buffer_info b = py::cast<py::buffer>(array).request();
  if (b.itemsize != sizeof(T)) throw BugError("an array of another type");
  const T* data = static_cast<const T*>(b.ptr);
  return {data, data + b.size};
}
Shape shape_of(py::handle array);
bool is_ids(py::handle array);  // of int32
// x, for gradients with respect to it: gradients of it reach what x is computed from, as those of x do.
Tensor watched(const Tensor& x);
// A tensor of a number, a list or an array for an op with `like`: floating values have its type.
Tensor constant_for(const Tensor& like, const py::object& value);
// A NumPy array with a copy of these bytes. type: NumPy's name.
py::object array_of_bytes(const void* data, std::size_t size, const std::vector<i64>& shape,
                          const char* type);
template <class T>
py::object array_of(const std::vector<T>& values, const std::vector<i64>& shape) {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, i32>);
  return array_of_bytes(values.data(), values.size() * sizeof(T), shape,
                        std::is_same_v<T, float>    ? "float32"
                        : std::is_same_v<T, double> ? "float64"
                                                    : "int32");
}
// These options, changed by the given ones (apply_options.cpp).
ApplyOptions with_options(ApplyOptions options, const py::kwargs& given);
Shape to_shape(const std::vector<i64>& dims);
std::vector<i64> dims_of(const Shape& s);
DType dtype_named(const std::string& name);  // UsageError for other names

// The first character of an example's text that holds, as JSON, what is neither ids nor values
// (examples.cpp).
constexpr char kMore = '\x1e';
// Fields of a dict, or an Example.
Example to_example(py::handle fields);
std::vector<Example> to_examples(py::handle list);
py::list from_examples(std::span<const Example> examples);

// The context of a program that uses redco from Python; made at the first use, one rank.
void ensure_context();

// --- parts of the module ---
void bind_errors(py::module_& m);
void bind_tensor(py::module_& m);
void bind_ops(py::module_& m);
void bind_more_ops(py::module_& m);
void bind_apply_options(py::module_& m);
void bind_params(py::module_& m);
void bind_models(py::module_& m);
void bind_examples(py::module_& m);
void bind_pipeline(py::module_& m);
void bind_standalone(py::module_& m);
void bind_environments(py::module_& m);
void bind_stacked(py::module_& m);
void bind_layers(py::module_& m);
void bind_plugins(py::module_& m);

}  // namespace redco::python

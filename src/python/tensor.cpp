#include "python/bindings.h"
#include "tensor/transfer.h"

namespace redco::python {

Shape to_shape(const std::vector<i64>& dims) { return {dims.begin(), dims.end()}; }
std::vector<i64> dims_of(const Shape& s) { return {s.begin(), s.end()}; }

DType dtype_named(const std::string& name) {
  if (name == "float32" || name == "f32" || name == "float") return DType::f32;
  if (name == "float64" || name == "f64" || name == "double") return DType::f64;
  if (name == "int32" || name == "i32" || name == "int") return DType::i32;
  throw UsageError("there is no type '{}' of tensors here; expected float32, float64 or int32", name);
}

namespace {

const char* numpy_name(DType t) {
  switch (t) {
    case DType::f32:
      return "float32";
    case DType::f64:
      return "float64";
    case DType::i32:
      return "int32";
    case DType::bf16:
      return "bfloat16";
    default:
      return "stored";
  }
}

std::vector<i64> visible_dims(const Tensor& t) { return {t.shape().begin() + t.hidden(), t.shape().end()}; }

// The number as a tensor of the type of `like`, for comparisons.
Tensor constant_like(const Tensor& like, double x) {
  if (like.is_float()) return full({}, x, like.dtype() == DType::f64 ? DType::f64 : DType::f32);
  const std::vector<i32> one = {static_cast<i32>(x)};
  return from_ids({}, one);
}

// Comparisons are of floating tensors; ids are compared as numbers.
Tensor comparable(const Tensor& t) { return t.is_float() ? t : to_float(t); }
Tensor compared(Binary op, const Tensor& a, const Tensor& b) {
  return compare(op, comparable(a), comparable(b));
}

// f of numbers; of ids it is computed in f64, which holds every id exactly, and gives ids.
template <class F>
Tensor with_ids(const F& f, const Tensor& a) {
  return a.is_float() ? f(a) : cast(f(to_float(a, DType::f64)), DType::i32);
}
template <class F>
Tensor with_ids(const F& f, const Tensor& a, const Tensor& b) {
  if (a.is_float() && b.is_float()) return f(a, b);
  if (!a.is_float() && !b.is_float())
    return cast(f(to_float(a, DType::f64), to_float(b, DType::f64)), DType::i32);
  const DType type = (a.is_float() ? a : b).dtype() == DType::f64 ? DType::f64 : DType::f32;
  return f(a.is_float() ? a : to_float(a, type), b.is_float() ? b : to_float(b, type));
}
template <class F>
Tensor with_ids(const F& f, const Tensor& a, double b, bool is_integer) {
  if (a.is_float()) return f(a, b);
  return is_integer ? cast(f(to_float(a, DType::f64), b), DType::i32) : f(to_float(a), b);
}

py::object to_numpy(const Tensor& t) {
  const std::vector<i64> dims = dims_of(t.shape());
  if (t.is_meta()) {  // of a plan: no contents
    const auto n = static_cast<std::size_t>(numel(t.shape()));
    if (t.dtype() == DType::i32) return array_of(std::vector<i32>(n), dims);
    if (t.dtype() == DType::f64) return array_of(std::vector<double>(n), dims);
    return array_of(std::vector<float>(n), dims);
  }
  if (t.dtype() == DType::i32) {
    std::vector<i32> ids;
    {
      const py::gil_scoped_release unlocked;
      ids = to_ids(t);
    }
    return array_of(ids, dims);
  }
  std::vector<double> values;
  {
    const py::gil_scoped_release unlocked;
    values = to_values(t);
  }
  if (t.dtype() == DType::f64) return array_of(values, dims);
  return array_of(std::vector<float>(values.begin(), values.end()), dims);
}

// One entry of an index at visible dim d: narrows or drops it.
Tensor at_integer(const Tensor& t, int d, i64 i) {
  const i64 n = t.size(d);
  if (i < -n || i >= n)
    throw py::index_error(fmt::format("index {} of a dim of size {} of {}", i, n, describe(t)));
  const Tensor one = narrow(t, d, i < 0 ? i + n : i, 1);
  std::vector<i64> dims = visible_dims(one);
  dims.erase(dims.begin() + d);
  return reshape(one, to_shape(dims));
}

// The elements ids of dim d, whose place takes the dims of ids.
Tensor at_ids(const Tensor& t, int d, const Tensor& ids) {
  if (!t.is_float()) return cast(at_ids(to_float(t, DType::f64), d, ids), DType::i32);
  const int n = t.visible(), k = ids.visible();
  std::vector<int> first = {d}, back;
  for (int i = 0; i < n; ++i)
    if (i != d) first.push_back(i);
  const Tensor x = d == 0 ? t : permute(t, first);
  const std::vector<i64> dims = visible_dims(x);
  std::vector<i64> out = visible_dims(ids);
  out.insert(out.end(), dims.begin() + 1, dims.end());
  const Tensor y = reshape(embedding(reshape(x, {dims[0], -1}), ids), to_shape(out));
  if (d == 0) return y;
  for (int i = 0; i < d; ++i) back.push_back(k + i);
  for (int i = 0; i < k; ++i) back.push_back(i);
  for (int i = d; i < n - 1; ++i) back.push_back(k + i);
  return permute(y, back);
}

// int32 ids of a list, an array or a mask in NumPy, for a dim of n elements.
Tensor ids_of(const py::object& entry, i64 n) {
  const py::object array = glue("index_ids")(entry, n);
  return from_ids(shape_of(array), elements<i32>(array));
}

Tensor at_slice(const Tensor& t, int d, const py::slice& s) {
  std::size_t start = 0, stop = 0, step = 0, n = 0;
  if (!s.compute(static_cast<std::size_t>(t.size(d)), &start, &stop, &step, &n))
    throw py::error_already_set();
  if (static_cast<py::ssize_t>(step) != 1) {
    std::vector<i32> ids(n);
    for (std::size_t i = 0; i < n; ++i) ids[i] = static_cast<i32>(start + i * step);  // also downwards
    const py::gil_scoped_release unlocked;
    return at_ids(t, d, from_ids({static_cast<i64>(n)}, ids));
  }
  if (static_cast<i64>(n) == t.size(d)) return t;
  const py::gil_scoped_release unlocked;
  return narrow(t, d, static_cast<i64>(start), static_cast<i64>(n));
}

// Whether it is an array with dims; NumPy's numbers are none.
bool is_array(py::handle x) {
  return py::hasattr(x, "__array__") && py::hasattr(x, "ndim") && py::cast<int>(x.attr("ndim")) > 0;
}

Tensor indexed(Tensor t, const py::object& index) {
  const py::tuple entries =
      py::isinstance<py::tuple>(index) ? py::cast<py::tuple>(index) : py::make_tuple(index);
  int given = 0;
  for (const py::handle& e : entries)
    if (!e.is_none() && !py::isinstance<py::ellipsis>(e)) ++given;
  if (given > t.visible()) throw py::index_error(fmt::format("{} indices of {}", given, describe(t)));
  int d = 0;
  bool selected = false;
  for (const py::handle& e : entries) {
    if (PyLong_Check(e.ptr())) {
      const i64 i = py::cast<i64>(e);
      const py::gil_scoped_release unlocked;
      t = at_integer(t, d, i);
    } else if (py::isinstance<py::ellipsis>(e)) {
      int after = 0;
      bool seen = false;
      for (const py::handle& x : entries) {
        if (seen && !x.is_none()) ++after;
        if (x.is(e)) seen = true;
      }
      d = t.visible() - after;
    } else if (e.is_none()) {
      std::vector<i64> dims = visible_dims(t);
      dims.insert(dims.begin() + d, 1);
      const py::gil_scoped_release unlocked;
      t = reshape(t, to_shape(dims));
      ++d;
    } else if (py::isinstance<py::slice>(e)) {
      t = at_slice(t, d, py::cast<py::slice>(e));
      ++d;
    } else if (py::isinstance<Tensor>(e) || py::isinstance<py::list>(e) || is_array(e)) {
      const bool tensor = py::isinstance<Tensor>(e);
      if (tensor && py::cast<const Tensor&>(e).is_float())
        throw py::index_error(
            "a mask selects as many elements as its values say, which a tensor cannot do: use redco.where(), or "
            "multiply by the mask. int32 ids select elements");
      if (std::exchange(selected, true))
        throw py::index_error("one list or tensor of ids in an index; give the others in a second index");
      const Tensor ids =
          tensor ? py::cast<Tensor>(e) : ids_of(py::reinterpret_borrow<py::object>(e), t.size(d));
      const py::gil_scoped_release unlocked;
      t = at_ids(t, d, ids);
      d += ids.visible();
    } else {
      if (!PyIndex_Check(e.ptr()))
        throw py::index_error(fmt::format("an index is {}; expected integers, slices, None, ... or int32 ids",
                                          py::cast<std::string>(py::repr(e))));
      const i64 i = py::cast<i64>(e);
      const py::gil_scoped_release unlocked;
      t = at_integer(t, d, i);
    }
  }
  return t;
}

}  // namespace

Tensor constant_for(const Tensor& like, const py::object& value) {
  return py::cast<Tensor>(glue("constant")(value, numpy_name(like.dtype())));
}

bool is_ids(py::handle array) {
  const py::buffer_info b = py::cast<py::buffer>(array).request();
  return b.itemsize == sizeof(i32) && b.format == py::format_descriptor<i32>::format();
}

py::object array_of_bytes(const void* data, std::size_t size, const std::vector<i64>& shape,
                          const char* type) {
  const auto bytes = py::reinterpret_steal<py::object>(
      PyByteArray_FromStringAndSize(static_cast<const char*>(data), static_cast<Py_ssize_t>(size)));
  return glue("ndarray")(py::tuple(py::cast(shape)), type, bytes);
}

Shape shape_of(py::handle array) {
  const py::buffer_info b = py::cast<py::buffer>(array).request();
  return {b.shape.begin(), b.shape.end()};
}

void bind_tensor(py::module_& m) {
  py::class_<Tensor> t(m, "Tensor",
                       "A global value. It is immutable; ops make new tensors. Every rank holds its part.");
  t.def_property_readonly("shape", [](const Tensor& x) { return py::tuple(py::cast(visible_dims(x))); });
  t.def_property_readonly("dtype", [](const Tensor& x) { return numpy_name(x.dtype()); });
  t.def_property_readonly("ndim", &Tensor::visible);
  t.def("__len__", [](const Tensor& x) {
    if (x.visible() == 0) throw py::type_error("a tensor without dims has no length");
    return x.size(0);
  });
  t.def("__repr__", [](const Tensor& x) { return "redco.Tensor(" + describe(x) + ")"; });
  t.def("numpy", &to_numpy, "The whole value as a NumPy array. All ranks call it together.");
  t.def(
      "int", [](const Tensor& x) { return x.dtype() == DType::i32 ? x : cast(x, DType::i32); }, Free(),
      "int32: numbers without their fractions, and without gradient.");
  t.def(
      "float", [](const Tensor& x) { return x.dtype() == DType::i32 ? to_float(x) : cast(x, DType::f32); },
      Free());
  t.def(
      "item", [](const Tensor& x) { return item(x); }, Free(),
      "The value of one element. All ranks call it together.");
  t.def(
      "__float__", [](const Tensor& x) { return item(x); }, Free());
  t.def("__bool__", [](const Tensor& x) -> bool {
    throw py::type_error("a branch on the value of " + describe(x) +
                         ": use redco.where(), or ctx.agree(tensor), which is the same on all ranks");
  });
  t.def("__getitem__", &indexed);
  t.def("__hash__", [](const Tensor& x) { return reinterpret_cast<std::intptr_t>(x.identity()); });
  t.def("__iter__", [](const Tensor& x) {
    py::list rows;
    for (i64 i = 0; i < x.size(0); ++i) rows.append(py::cast(at_integer(x, 0, i)));
    return rows.attr("__iter__")();
  });

  t.def(
      "__neg__", [](const Tensor& a) { return with_ids([](const Tensor& x) { return -x; }, a); }, Free());
  t.def("__pos__", [](const Tensor& a) { return a; });
  t.def(
      "__abs__", [](const Tensor& a) { return with_ids([](const Tensor& x) { return abs(x); }, a); }, Free());
  // The last overload of an operator: arrays and lists are constants.
  t.attr("__array_ufunc__") = py::none();  // so that NumPy leaves array + tensor to the tensor
  const auto of_arrays = [&t](const char* name, auto f) {
    const auto with_constant = [f](const Tensor& a, const py::object& b) {
      const Tensor constant = constant_for(a, b);
      const py::gil_scoped_release unlocked;
      return f(a, constant);
    };
    t.def(
        name, [with_constant](const Tensor& a, const py::list& b) { return with_constant(a, b); },
        py::is_operator());
    t.def(
        name, [with_constant](const Tensor& a, const py::buffer& b) { return with_constant(a, b); },
        py::is_operator());
  };
  // Sums, differences and products of ids are ids; everything else is floating.
  const auto define = [&t, &of_arrays](const char* name, const char* reflected, auto f) {
    t.def(
        name, [f](const Tensor& a, const Tensor& b) { return with_ids(f, a, b); }, Free(), py::is_operator());
    t.def(
        name, [f](const Tensor& a, i64 b) { return with_ids(f, a, static_cast<double>(b), true); }, Free(),
        py::is_operator());
    t.def(
        name, [f](const Tensor& a, double b) { return with_ids(f, a, b, false); }, Free(), py::is_operator());
    const auto swapped = [f](const auto& x, const auto& y) { return f(y, x); };
    t.def(
        reflected,
        [swapped](const Tensor& a, i64 b) { return with_ids(swapped, a, static_cast<double>(b), true); },
        Free(), py::is_operator());
    t.def(
        reflected, [swapped](const Tensor& a, double b) { return with_ids(swapped, a, b, false); }, Free(),
        py::is_operator());
    of_arrays(name, [f](const Tensor& a, const Tensor& b) { return with_ids(f, a, b); });
    of_arrays(reflected, [f](const Tensor& a, const Tensor& b) { return with_ids(f, b, a); });
  };
  define("__add__", "__radd__", [](const auto& a, const auto& b) -> Tensor { return a + b; });
  define("__sub__", "__rsub__", [](const auto& a, const auto& b) -> Tensor { return a - b; });
  define("__mul__", "__rmul__", [](const auto& a, const auto& b) -> Tensor { return a * b; });
  t.def(
      "__truediv__", [](const Tensor& a, const Tensor& b) { return comparable(a) / comparable(b); }, Free(),
      py::is_operator());
  t.def(
      "__truediv__", [](const Tensor& a, double b) { return comparable(a) / b; }, Free(), py::is_operator());
  t.def(
      "__rtruediv__",
      [](const Tensor& a, double b) {
        const Tensor x = comparable(a);
        return constant_like(x, b) / x;
      },
      Free(), py::is_operator());
  of_arrays("__truediv__", [](const Tensor& a, const Tensor& b) { return comparable(a) / comparable(b); });
  of_arrays("__rtruediv__", [](const Tensor& a, const Tensor& b) { return comparable(b) / comparable(a); });
  t.def(
      "__matmul__", [](const Tensor& a, const Tensor& b) { return matmul(a, b); }, Free(), py::is_operator());
  of_arrays("__matmul__", [](const Tensor& a, const Tensor& b) { return matmul(a, b); });
  of_arrays("__rmatmul__", [](const Tensor& a, const Tensor& b) { return matmul(b, a); });
  t.def(
      "__pow__", [](const Tensor& a, double b) { return pow(a, b); }, Free(), py::is_operator());
  t.def(
      "__pow__", [](const Tensor& a, const Tensor& b) { return exp(b * log(a)); }, Free(), py::is_operator());

  struct Comparison {
    const char* name;
    Binary op;
    bool swapped;
  };
  for (const Comparison& c :
       {Comparison{"__lt__", Binary::lt, false}, Comparison{"__le__", Binary::le, false},
        Comparison{"__gt__", Binary::lt, true}, Comparison{"__ge__", Binary::le, true},
        Comparison{"__eq__", Binary::eq, false}}) {
    t.def(
        c.name,
        [c](const Tensor& a, const Tensor& b) {
          return c.swapped ? compared(c.op, b, a) : compared(c.op, a, b);
        },
        Free(), py::is_operator());
    t.def(
        c.name,
        [c](const Tensor& a, double b) {
          const Tensor x = constant_like(a, b);
          return c.swapped ? compared(c.op, x, a) : compared(c.op, a, x);
        },
        Free(), py::is_operator());
    of_arrays(c.name, [c](const Tensor& a, const Tensor& b) {
      return c.swapped ? compared(c.op, b, a) : compared(c.op, a, b);
    });
  }
  t.def(
      "__ne__", [](const Tensor& a, const Tensor& b) { return 1 - compared(Binary::eq, a, b); }, Free(),
      py::is_operator());
  t.def(
      "__ne__", [](const Tensor& a, double b) { return 1 - compared(Binary::eq, a, constant_like(a, b)); },
      Free(), py::is_operator());

  m.def(
      "_from_array",
      [](const py::object& array, const std::string& type) {
        const Shape shape = shape_of(array);
        if (type == "int32") {
          const auto v = elements<i32>(array);
          return from_ids(shape, v);
        }
        if (type == "float64") {
          const auto v = elements<double>(array);
          return from_values(shape, std::span<const double>(v));
        }
        const auto v = elements<float>(array);
        return from_values(shape, std::span<const float>(v));
      },
      "array"_a, "type"_a);
}

}  // namespace redco::python

#include "python/stacked.h"

#include <nlohmann/json.hpp>

#include "python/script.h"

namespace redco::python {

namespace {

using Json = nlohmann::ordered_json;

// The dims of a row of each field that has not one dim.
Json shapes_of(const Example& e) {
  if (e.text.empty() || e.text.front() != kMore) return Json::object();
  const Json more = Json::parse(e.text.substr(1), nullptr, false);
  return more.is_object() ? more.value("#shapes", Json::object()) : Json::object();
}

std::vector<i64> row_dims(const Json& shapes, const std::string& name, std::size_t size) {
  if (shapes.contains(name)) return shapes.at(name).get<std::vector<i64>>();
  return {static_cast<i64>(size)};
}

// The rows one after the other; with `length`, each of this many elements, cut or filled.
template <class T, class Of>
std::vector<T> stacked(std::span<const Example* const> rows, const std::string& name,
                       std::optional<i64> length, T fill, const Of& of) {
  std::vector<T> out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Example* e = rows[i];
    const auto it = of(*e).find(name);
    if (it == of(*e).end())
      throw UsageError("the example {} has no field '{}', but the first one has it", e->ordinal, name);
    const std::vector<T>& row = it->second;
    if (!length && row.size() * i != out.size())
      throw UsageError(
          "the field '{}' has {} elements in the example {}, but {} in the first one. Rows of different "
          "lengths need redco.rows(examples, '{}', length)",
          name, row.size(), e->ordinal, of(*rows[0]).at(name).size(), name);
    const std::size_t n = length ? std::min(row.size(), static_cast<std::size_t>(*length)) : row.size();
    out.insert(out.end(), row.begin(), row.begin() + static_cast<std::ptrdiff_t>(n));
    if (length) out.resize(out.size() + static_cast<std::size_t>(*length) - n, fill);
  }
  return out;
}
const auto kIds = [](const Example& e) -> const auto& { return e.ids; };
const auto kValues = [](const Example& e) -> const auto& { return e.values; };

// The elements and shape of a field of all rows.
template <class T>
struct Stack {
  std::vector<T> elements;
  std::vector<i64> dims;
};
template <class T, class Of>
Stack<T> stack(std::span<const Example* const> rows, const std::string& name, std::optional<i64> length,
               T fill, const Json& shapes, const Of& of) {
  Stack<T> out{stacked<T>(rows, name, length, fill, of), {static_cast<i64>(rows.size())}};
  const auto dims = length ? std::vector<i64>{*length} : row_dims(shapes, name, of(*rows[0]).at(name).size());
  out.dims.insert(out.dims.end(), dims.begin(), dims.end());
  return out;
}

// Calls of_ids or of_values with each field of the first row, as the default of collate() makes it.
void for_each_field(std::span<const Example* const> rows, const BatchShape& shape,
                    const std::function<void(const std::string&, Stack<i32>)>& of_ids,
                    const std::function<void(const std::string&, Stack<float>)>& of_values) {
  const Json shapes = shapes_of(*rows[0]);
  for (const auto& [name, ids] : rows[0]->ids) {
    const bool sequence = !shapes.contains(name);
    of_ids(name, stack<i32>(rows, name, sequence ? std::optional<i64>(shape.length) : std::nullopt,
                            name == "labels" ? -100 : 0, shapes, kIds));
  }
  for (const auto& [name, values] : rows[0]->values)
    of_values(name, stack<float>(rows, name, std::nullopt, 0, shapes, kValues));
}

// The default of collate() as NumPy arrays, for super().collate().
py::dict stacked_fields(const py::list& examples, const BatchShape& shape) {
  py::dict out;
  const std::vector<Example> held = to_examples(examples);
  if (held.empty()) return out;
  std::vector<const Example*> rows;
  for (const Example& e : held) rows.push_back(&e);
  for_each_field(
      rows, shape,
      [&](const std::string& name, const Stack<i32>& s) { out[name.c_str()] = array_of(s.elements, s.dims); },
      [&](const std::string& name, const Stack<float>& s) {
        out[name.c_str()] = array_of(s.elements, s.dims);
      });
  return out;
}

// For rows() in Python; None: the field is no array.
py::object stack_field(const py::list& examples, const std::string& name, std::optional<i64> length,
                       double fill) {
  std::vector<const Example*> rows;
  for (const py::handle& x : examples) rows.push_back(&py::cast<const Example&>(x));
  const Json shapes = shapes_of(*rows.at(0));
  if (rows[0]->ids.contains(name)) {
    const auto s = stack<i32>(rows, name, length, static_cast<i32>(fill), shapes, kIds);
    return array_of(s.elements, s.dims);
  }
  if (rows[0]->values.contains(name)) {
    const auto s = stack<float>(rows, name, length, static_cast<float>(fill), shapes, kValues);
    return array_of(s.elements, s.dims);
  }
  return py::none();
}

}  // namespace

Batch stacked_batch(std::span<const Example> mine, const BatchShape& shape, const DefaultWeights& weights) {
  std::vector<const Example*> rows;
  for (const Example& e : mine) rows.push_back(&e);
  Batch b;
  b.shape = shape;
  std::optional<std::vector<i32>> labels;
  for_each_field(
      rows, shape,
      [&](const std::string& name, Stack<i32> s) {
        s.dims[0] = shape.rows;
        b.fields[name] = from_local_ids(to_shape(s.dims), s.elements);
        if (name == "labels") labels = std::move(s.elements);
      },
      [&](const std::string& name, Stack<float> s) {
        s.dims[0] = shape.rows;
        b.fields[name] = from_local_values(to_shape(s.dims), s.elements);
      });
  weights.add_to(b, static_cast<i64>(mine.size()), labels);
  return b;
}

Tensor rows_of(const std::string& name, const py::handle& array, i64 n, std::size_t mine,
               const BatchShape& shape) {
  Shape s = shape_of(array);
  if (s.empty() || s[0] != n)
    throw PythonError(fmt::format("field '{}' has {}; expected {} rows, one per example", name,
                                  s.empty() ? "no dims" : fmt::format("{} rows", s[0]), n));
  s[0] = shape.rows;
  const bool none = mine == 0;
  if (is_ids(array)) {
    std::vector<i32> ids;
    if (!none) ids = elements<i32>(array);
    return from_local_ids(s, ids);
  }
  std::vector<float> values;
  if (!none) values = elements<float>(array);
  return from_local_values(s, values);
}

void bind_stacked(py::module_& m) {
  m.def("_batch_of", [](const JobHandle& job, const py::list& list) {
    const std::vector<Example> examples = to_examples(list);
    const i64 n = static_cast<i64>(examples.size());
    BatchShape shape{.rows = n, .mine = {0, n}, .length = 1, .target_length = 1};
    for (const Example& e : examples) {
      shape.length = std::max(shape.length, longest_ids(e));
      if (const auto it = e.ids.find("labels"); it != e.ids.end())
        shape.target_length = std::max(shape.target_length, static_cast<i64>(it->second.size()));
    }
    const py::gil_scoped_release unlocked;
    return job.pipeline->collate(examples, shape);
  });
  m.def("_stacked_fields", &stacked_fields, "examples"_a, "shape"_a);
  m.def("_stack", &stack_field, "examples"_a, "field"_a, "length"_a = py::none(), "fill"_a = 0);
}

}  // namespace redco::python

#include "python/stacked.h"

#include <nlohmann/json.hpp>

#include "python/script.h"

namespace redco::python {

namespace {

using Json = nlohmann::json;

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

// For rows() in Python; None: the field is no array.
py::object stack_field(const py::list& examples, const std::string& name, std::optional<i64> length,
                       double fill) {
  std::vector<const Example*> rows;
  for (const py::handle& x : examples) rows.push_back(&py::cast<const Example&>(x));
  const Json shapes = shapes_of(*rows.at(0));
  if (rows[0]->ids.contains(name)) {
    const auto s = stack<i32>(rows, name, length, static_cast<i32>(fill), shapes, kIds);
    return array_of(s.elements, s.dims, "int32");
  }
  if (rows[0]->values.contains(name)) {
    const auto s = stack<float>(rows, name, length, static_cast<float>(fill), shapes, kValues);
    return array_of(s.elements, s.dims, "float32");
  }
  return py::none();
}

}  // namespace

Batch stacked_batch(std::span<const Example> mine, const BatchShape& shape,
                    const std::vector<std::string>& terms) {
  std::vector<const Example*> rows;
  for (const Example& e : mine) rows.push_back(&e);
  const Json shapes = shapes_of(mine[0]);
  Batch b;
  b.shape = shape;
  const auto global = [&](std::vector<i64> dims) {
    dims[0] = shape.rows;
    return to_shape(dims);
  };
  for (const auto& [name, ids] : mine[0].ids) {
    const bool sequence = !shapes.contains(name);
    const auto s = stack<i32>(rows, name, sequence ? std::optional<i64>(shape.length) : std::nullopt,
                              name == "labels" ? -100 : 0, shapes, kIds);
    b.fields[name] = from_local_ids(global(s.dims), s.elements);
  }
  for (const auto& [name, values] : mine[0].values) {
    const auto s = stack<float>(rows, name, std::nullopt, 0, shapes, kValues);
    b.fields[name] = from_local_values(global(s.dims), s.elements);
  }
  for (const std::string& term : terms) b.weights[term] = static_cast<double>(mine.size());
  return b;
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
  m.def("_stack", &stack_field, "examples"_a, "field"_a, "length"_a = py::none(), "fill"_a = 0);
}

}  // namespace redco::python

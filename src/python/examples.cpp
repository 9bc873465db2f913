// Examples and data sets in Python.
//
// An Example has ids, values and one text. What else a Python example holds (texts, lists of texts, the
// shapes of its arrays) is kept in that text as JSON, behind kMore.
#include <cstdint>

#include "chat/chat_template.h"
#include "python/bindings.h"

namespace redco::python {

namespace {

// The dict in an example's text; empty: a text or nothing.
py::dict more_of(const Example& e) {
  if (e.text.empty() || e.text.front() != kMore) return {};
  return py::cast<py::dict>(glue("loads")(e.text.substr(1)));
}

py::object array_in(const Example& e, const std::string& name, const py::dict& shapes) {
  py::object array;
  if (const auto i = e.ids.find(name); i != e.ids.end())
    array = array_of(i->second, {static_cast<i64>(i->second.size())});
  else if (const auto v = e.values.find(name); v != e.values.end())
    array = array_of(v->second, {static_cast<i64>(v->second.size())});
  else
    return py::none();
  if (shapes.contains(name)) array = array.attr("reshape")(shapes[name.c_str()]);
  return array;
}

py::dict shapes_in(const py::dict& more) {
  return more.contains("#shapes") ? py::cast<py::dict>(more["#shapes"]) : py::dict();
}

py::object field(const Example& e, const std::string& name) {
  const py::dict more = more_of(e);
  if (const py::object array = array_in(e, name, shapes_in(more)); !array.is_none()) return array;
  if (more.contains(name)) return more[name.c_str()];
  if (name == "text" && more.empty() && !e.text.empty()) return py::cast(e.text);
  return py::none();
}

std::vector<std::string> names_of(const Example& e) {
  std::vector<std::string> names = e.ids.names();
  for (const std::string& n : e.values.names()) names.push_back(n);
  const py::dict more = more_of(e);
  for (const auto& [key, value] : more)
    if (const std::string k = py::cast<std::string>(key); k != "#shapes") names.push_back(k);
  if (more.empty() && !e.text.empty()) names.emplace_back("text");
  return names;
}

}  // namespace

Example to_example(py::handle x) {
  if (py::isinstance<Example>(x)) return py::cast<Example>(x);
  // (ids, values, text, id)
  const py::tuple parts = py::cast<py::tuple>(glue("example_parts")(x));
  Example e;
  for (const auto& [name, array] : py::cast<py::dict>(parts[0]))
    e.ids[py::cast<std::string>(name)] = elements<i32>(array);
  for (const auto& [name, array] : py::cast<py::dict>(parts[1]))
    e.values[py::cast<std::string>(name)] = elements<float>(array);
  e.text = py::cast<std::string>(parts[2]);
  e.id = py::cast<std::string>(parts[3]);
  return e;
}

std::vector<Example> to_examples(py::handle list) {
  std::vector<Example> out;
  for (const py::handle& x : list) out.push_back(to_example(x));
  return out;
}

py::list from_examples(std::span<const Example> examples) {
  py::list out;
  for (const Example& e : examples) out.append(py::cast(e));
  return out;
}

void bind_examples(py::module_& m) {
  py::class_<Example>(m, "Example", "One example: arrays and texts by name.")
      .def(py::init([](const py::dict& fields) { return to_example(fields); }))
      .def("__getitem__",
           [](const Example& e, const std::string& name) {
             py::object x = field(e, name);
             if (x.is_none())
               throw py::key_error(fmt::format("the example has no field '{}'; it has: {}", name,
                                               fmt::join(names_of(e), ", ")));
             return x;
           })
      .def("__contains__",
           [](const Example& e, const std::string& name) { return !field(e, name).is_none(); })
      .def(
          "get",
          [](const Example& e, const std::string& name, const py::object& otherwise) {
            const py::object x = field(e, name);
            return x.is_none() ? otherwise : x;
          },
          "name"_a, "otherwise"_a = py::none())
      .def("keys", &names_of)
      .def("__repr__",
           [](const Example& e) {
             return fmt::format("redco.Example({} with {})", e.ordinal, fmt::join(names_of(e), ", "));
           })
      .def_property_readonly("id",
                             [](const Example& e) { return e.id.empty() ? py::none() : glue("loads")(e.id); })
      .def_readonly("ordinal", &Example::ordinal);

  py::class_<Dataset, std::shared_ptr<Dataset>>(m, "Dataset", "The examples of an epoch or an evaluation.")
      .def("__len__", &Dataset::size)
      .def("__getitem__",
           [](const Dataset& d, i64 i) {
             if (i < 0) i += d.size();
             if (i < 0 || i >= d.size()) throw py::index_error(fmt::format("{} of {} examples", i, d.size()));
             return d.get(i);
           })
      .def(
          "endless",
          [](const Dataset& d, i64 first, i64 n) { return from_examples(endless_examples(d, first, n)); },
          "first"_a, "n"_a,
          "Examples [first, first + n) of an endless sequence that visits all before it repeats one.")
      .def("fingerprint", &Dataset::fingerprint);

  py::class_<BatchShape>(m, "BatchShape", "The global shape of a micro-batch, and this replica's rows.")
      .def_readonly("rows", &BatchShape::rows)
      .def_property_readonly("mine",
                             [](const BatchShape& s) { return py::make_tuple(s.mine.begin, s.mine.end); })
      .def_readonly("length", &BatchShape::length)
      .def_readonly("target_length", &BatchShape::target_length);

  py::class_<Batch>(m, "Batch", "Tensors of a micro-batch by name, [rows, ...], and the terms' weights.")
      .def("__getitem__", [](const Batch& b, const std::string& name) { return b[name]; })
      .def("__contains__", [](const Batch& b, const std::string& name) { return b.fields.contains(name); })
      .def("keys",
           [](const Batch& b) {
             std::vector<std::string> names;
             for (const auto& [name, t] : b.fields) names.push_back(name);
             return names;
           })
      .def_readonly("fields", &Batch::fields)
      .def_readonly("weights", &Batch::weights)
      .def_readonly("shape", &Batch::shape);

  m.def(
      "id_rows",
      [](const py::list& examples, const BatchShape& s, const std::string& name, i32 fill) {
        return id_rows(to_examples(examples), s, name, fill);
      },
      "examples"_a, "shape"_a, "field"_a, "fill"_a = 0,
      "[rows, length] ids of a field, padded on the right.");
  m.def(
      "value_rows",
      [](const py::list& examples, const BatchShape& s, const std::string& name,
         const std::vector<i64>& row) { return value_rows(to_examples(examples), s, name, to_shape(row)); },
      "examples"_a, "shape"_a, "field"_a, "row_shape"_a = std::vector<i64>{}, "[rows, *row_shape] values.");
  m.def(
      "fixed_id_rows",
      [](const py::list& examples, const BatchShape& s, const std::string& name,
         const std::vector<i64>& row) {
        return fixed_id_rows(to_examples(examples), s, name, to_shape(row));
      },
      "examples"_a, "shape"_a, "field"_a, "row_shape"_a = std::vector<i64>{}, "[rows, *row_shape] ids.");
  m.def(
      "token_log_probs",
      [](const Model& model, const ParamTree& params, const Batch& b, const ApplyOptions& o,
         const std::string& prefix) { return token_log_probs(model, params, b, o, prefix); },
      "model"_a, "params"_a, "batch"_a, "options"_a = ApplyOptions{}, "prefix"_a = "", Free(),
      "[rows, length] log-probabilities of the labels PREFIXlabels, 0 where there is none.");
}

}  // namespace redco::python

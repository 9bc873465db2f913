#include "python/table.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/hash.h"

namespace redco::python {

namespace {

using Json = nlohmann::ordered_json;
const std::string kRow = "#row";

template <class T>
std::string_view bytes_of(const std::vector<T>& v) {
  return {reinterpret_cast<const char*>(v.data()), v.size() * sizeof(T)};
}
template <class T>
std::vector<T> from_bytes(const std::string& bytes) {
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
  return out;
}

}  // namespace

class TableRows : public Dataset {
 public:
  TableRows(std::shared_ptr<const Table> table, std::vector<i32> order, std::string fingerprint, bool whole)
      : table_(std::move(table)),
        order_(std::move(order)),
        fingerprint_(std::move(fingerprint)),
        whole_(whole) {}
  i64 size() const override { return static_cast<i64>(order_.size()); }
  i64 length(i64) const override { return table_->longest(); }
  Example get(i64 i) const override {
    const i32 row = order_[static_cast<std::size_t>(i)];
    Example e;
    if (whole_) {
      e = table_->example(row);
      e.ordinal = i;
    } else {
      e.text = kRow;  // no field, because that would be an allocation for each row of each step
      e.ordinal = row;
    }
    return e;
  }
  std::string fingerprint() const override { return fingerprint_; }
  // A row is copied faster than it is handed over to another thread.
  Reading reading() const override { return Reading::rank_only; }
  bool ordered() const override { return true; }

 private:
  std::shared_ptr<const Table> table_;
  std::vector<i32> order_;
  std::string fingerprint_;
  bool whole_;
};

i64 Table::Column::width() const {
  i64 n = 1;
  for (const i64 d : dims) n *= d;
  return n;
}

Table::Table(const py::dict& arrays) {
  Json shapes = Json::object();
  for (const auto& [key, array] : arrays) {
    Column c;
    c.name = py::cast<std::string>(key);
    const Shape s = shape_of(array);
    rows_ = s[0];
    c.dims.assign(s.begin() + 1, s.end());
    c.is_ids = is_ids(array);
    if (c.is_ids)
      c.ids = elements<i32>(array);
    else
      c.values = elements<float>(array);
    if (c.dims.size() != 1) shapes[c.name] = c.dims;
    columns_.push_back(std::move(c));
  }
  if (!shapes.empty()) text_ = '\x1e' + Json{{"#shapes", shapes}}.dump();  // as in examples.cpp
}

Table::Table(const std::string& json) {
  try {
    const Json j = Json::parse(json);
    rows_ = j.at("rows");
    text_ = j.at("text");
    for (const Json& x : j.at("columns")) {
      Column c{.name = x.at("name"), .dims = x.at("dims").get<std::vector<i64>>(), .is_ids = x.at("ids")};
      const std::string bytes =
          decode_base64(x.at("data").get<std::string>(), "the examples in the checkpoint");
      if (rows_ < 0 || c.width() < 0 || bytes.size() != static_cast<std::size_t>(rows_ * c.width()) * 4)
        throw ContentsError(
            "the examples in the checkpoint have {} bytes of '{}'; expected {} rows of {} numbers",
            bytes.size(), c.name, rows_, c.width());
      if (c.is_ids)
        c.ids = from_bytes<i32>(bytes);
      else
        c.values = from_bytes<float>(bytes);
      columns_.push_back(std::move(c));
    }
  } catch (const Json::exception& e) {
    throw ContentsError("the examples in the checkpoint are not readable: {}", e.what());
  }
}

std::string Table::json() const {
  Json columns = Json::array();
  for (const Column& c : columns_)
    columns.push_back({{"name", c.name},
                       {"dims", c.dims},
                       {"ids", c.is_ids},
                       {"data", encode_base64(c.is_ids ? bytes_of(c.ids) : bytes_of(c.values))}});
  return Json{{"rows", rows_}, {"text", text_}, {"columns", columns}}.dump();
}

u64 Table::digest() const {
  u64 d = static_cast<u64>(rows_);
  for (const Column& c : columns_)
    d = hash64(c.is_ids ? bytes_of(c.ids) : bytes_of(c.values), hash64(c.name, d));
  return d;
}

Example Table::example(i64 row) const {
  Example e;
  e.text = text_;
  for (const Column& c : columns_) {
    const auto at = static_cast<std::ptrdiff_t>(row * c.width()),
               end = at + static_cast<std::ptrdiff_t>(c.width());
    if (c.is_ids)
      e.ids[c.name].assign(c.ids.begin() + at, c.ids.begin() + end);
    else
      e.values[c.name].assign(c.values.begin() + at, c.values.begin() + end);
  }
  return e;
}

i64 Table::longest() const {
  i64 n = 1;
  for (const Column& c : columns_)
    if (c.is_ids) n = std::max(n, c.width());
  return n;
}

std::shared_ptr<const Dataset> Table::rows(std::shared_ptr<const Table> table, std::vector<i32> order,
                                           std::string fingerprint, bool whole) {
  return std::make_shared<TableRows>(std::move(table), std::move(order), std::move(fingerprint), whole);
}

bool Table::has(std::span<const Example> examples) { return !examples.empty() && examples[0].text == kRow; }

Batch Table::batch(std::span<const Example> mine, const BatchShape& shape,
                   const DefaultWeights& weights) const {
  std::vector<i64> rows;
  rows.reserve(mine.size());
  for (const Example& e : mine) rows.push_back(e.ordinal);
  Batch b;
  b.shape = shape;
  std::optional<std::vector<i32>> labels;
  const auto gathered = [&](const Column& c, const auto& all) {
    std::remove_cvref_t<decltype(all)> out(rows.size() * static_cast<std::size_t>(c.width()));
    auto to = out.begin();
    for (const i64 row : rows) to = std::copy_n(all.begin() + row * c.width(), c.width(), to);
    return out;
  };
  for (const Column& c : columns_) {
    std::vector<i64> dims = {shape.rows};
    dims.insert(dims.end(), c.dims.begin(), c.dims.end());
    if (!c.is_ids) {
      b.fields[c.name] = from_local_values(to_shape(dims), gathered(c, c.values));
      continue;
    }
    std::vector<i32> ids = gathered(c, c.ids);
    b.fields[c.name] = from_local_ids(to_shape(dims), ids);
    if (c.name == "labels") labels = std::move(ids);
  }
  weights.add_to(b, static_cast<i64>(mine.size()), labels);
  return b;
}

}  // namespace redco::python

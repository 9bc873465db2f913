// Examples of an epoch that source() returns as columns: arrays with a row for each example. Rows are neither
// copied nor converted one by one, because an algorithm such as PPO reads each many times.
#pragma once

#include "pipeline/pipeline.h"
#include "python/bindings.h"
#include "python/default_weights.h"

namespace redco::python {

class Table {
 public:
  // Of arrays of int32 or float32 with equal numbers of rows. REQUIRES: Python's lock.
  explicit Table(const py::dict& arrays);
  // Of the text of json(). ContentsError for any other text.
  explicit Table(const std::string& json);

  i64 size() const { return rows_; }
  std::string json() const;  // lossless
  u64 digest() const;
  Example example(i64 row) const;
  // Examples in this order; with `whole`, they have all fields, otherwise only what batch() needs.
  static std::shared_ptr<const Dataset> rows(std::shared_ptr<const Table> table, std::vector<i32> order,
                                             std::string fingerprint, bool whole);
  // Whether they are examples of rows() that are not whole.
  static bool has(std::span<const Example> examples);
  // Their batch: each column is a field of its shape.
  Batch batch(std::span<const Example> mine, const BatchShape& shape, const DefaultWeights& weights) const;

 private:
  struct Column {
    std::string name;
    std::vector<i64> dims;  // of a row
    bool is_ids = false;
    std::vector<i32> ids;
    std::vector<float> values;
    i64 width() const;
  };
  friend class TableRows;
  i64 longest() const;  // the widest column of ids

  i64 rows_ = 0;
  std::vector<Column> columns_;
  std::string text_;  // of the examples: the shapes of their fields
};

}  // namespace redco::python

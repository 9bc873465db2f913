// The values of a record batch of an Arrow stream.
#pragma once

#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "data/arrow/arrow_schema.h"

namespace redco {

// The values of a field; its buffers lie in an ArrowBatch.
struct ArrowArray {
  i64 length = 0;
  std::string_view validity;  // bits; empty: all values are there
  std::string_view offsets, data;
  std::vector<std::string_view> more;  // of views
  std::vector<ArrowArray> children;
};

// A batch in memory: the arrays of `fields`. ContentsError, without the place, unless the buffers have the
// sizes that the lengths need; UsageError for compression other than zstd.
struct ArrowBatch {
  ArrowBatch(const std::vector<ArrowField>& fields, const FlatTable& batch, std::string stored_body);
  ArrowBatch(const ArrowBatch&) = delete;
  ArrowBatch& operator=(const ArrowBatch&) = delete;

  i64 n_rows = 0;
  std::vector<ArrowArray> columns;

 private:
  class Reader;
  std::string body_;
  std::deque<std::string> unpacked_;  // of compressed buffers
};

// The batches of the dictionaries by id, each with one column. A delta adds a batch.
using ArrowDictionaries = std::map<i64, std::deque<ArrowBatch>>;

// The value of a field in row `i`. ContentsErrors, without the place: indices and offsets outside of their
// arrays, texts that are not UTF-8, rows of more than 512 MiB.
class ArrowValues {
 public:
  using Json = nlohmann::ordered_json;
  explicit ArrowValues(const ArrowDictionaries& dictionaries) : dictionaries_(dictionaries) {}
  Json value(const ArrowField& field, const ArrowArray& array, i64 i) {
    return value(field, array, i, field.dictionary.has_value());
  }

 private:
  // is_index: the array holds indices into the field's dictionary.
  Json value(const ArrowField& field, const ArrowArray& array, i64 i, bool is_index);
  Json stored(const ArrowField& field, const ArrowArray& array, i64 i);
  Json entry(const ArrowField& field, const ArrowArray& indices, i64 i);
  Json list(const ArrowField& field, const ArrowArray& array, i64 i);
  Json text(const ArrowField& field, std::string_view bytes);
  void spend(std::size_t bytes);

  const ArrowDictionaries& dictionaries_;
  std::size_t spent_ = 0;
  int depth_ = 0;
};

}  // namespace redco

// What data.where and data.fields make of a record before its reader sees it: records that are left out, and
// keys that are paths or templates.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "data/data_settings.h"

namespace redco {

class RecordFilter;

// A text with columns in braces, "{question}\n{answer}"; "{{" and "}}" are braces, and the two characters \n
// (\t, \\) are a line break (a tab, a backslash). "{}" is nothing, so that a text without columns can be one.
bool is_template(const std::string& field);

class RecordMap {
 public:
  // filters: data.where holds too (training and evaluation data; not the lines of predict.input).
  // UsageError: data.where or a template is malformed.
  RecordMap(const DataSettings& s, bool filters);
  RecordMap(RecordMap&&) noexcept;
  ~RecordMap();

  // Whether records may change or be left out: data.where, a template, or a path such as turns.0.text.
  bool changes() const;
  // The same without paths, which most readers know themselves.
  bool rewrites() const;

  // Adds the values of paths and templates under the names that the settings use for them. False: data.where
  // leaves the record out. problem: why the record is bad, if it is. A text that is no JSON object stays as
  // it is, for its reader to refuse.
  bool apply(std::string& json, std::string& problem);
  // At the end of the data. UsageError if no record had one of the columns of data.where. Logs how many were
  // left out.
  void finish();

  // Part of a cache's key; "" if records do not change.
  std::string fingerprint() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace redco

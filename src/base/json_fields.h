// Checked access to the fields of a JSON object. Every error names the file and the field.
#pragma once

#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/types.h"

namespace redco {

// Reads the fields of one object; finish() rejects unknown fields. Holds a reference: the JSON value must
// outlive it.
class JsonFields {
 public:
  // `where`: "dir/tokenizer.json: normalizer". ContentsError unless `value` is an object.
  JsonFields(const nlohmann::json& value, std::string where);

  // The field of that name, or nullptr if it is missing or null.
  const nlohmann::json* find(const char* name);
  const nlohmann::json& need(const char* name);  // ContentsError if it is missing

  bool boolean(const char* name);  // required
  bool boolean(const char* name, bool otherwise);
  std::string text(const char* name);
  std::string text(const char* name, const std::string& otherwise);
  std::string character(const char* name);  // a string of one character
  i64 integer(const char* name);
  i64 integer(const char* name, i64 otherwise);
  const nlohmann::json& array(const char* name);

  // Known fields whose values have no effect here.
  void inert(std::initializer_list<const char*> names);

  // ContentsError for a field that is not null and that no call above named.
  void finish();

  std::string at(std::string_view name) const { return where_ + "." + std::string(name); }
  const std::string& where() const { return where_; }

 private:
  const nlohmann::json& value_;
  std::string where_;
  std::string known_;  // " a b c ": the names that calls asked for
};

// ContentsError: `where` has the type `found`, which is not one of `supported`.
[[noreturn]] void unknown_type(const std::string& where, const std::string& found,
                               std::string_view supported);

}  // namespace redco

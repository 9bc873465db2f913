// data.where: which records of the data are used.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace redco {

// The value under a key, or, without such a key, along a path: "translation.en" is "en" in the object under
// "translation", and "turns.0.text" is "text" in the first entry of the list "turns". Null values count as
// missing.
const nlohmann::ordered_json* value_at(const nlohmann::ordered_json& j, std::string_view path);

// Comparisons joined by `and` and `or` (`and` binds closer):
//   lang == "de" and score >= 0.5 or meta.checked == true
// A comparison has a key or column (a path as above; `in backquotes` if it has other characters than letters,
// digits, '_', '.' and '-'), one of == != < <= > >=, and a text in quotes, a number, true, false or null. A
// record without the key has null, which is unequal to all other values and in no order with them. Cells of
// tables are texts: as numbers they are compared with numbers.
class RecordFilter {
 public:
  // UsageError: not of this form.
  explicit RecordFilter(const std::string& expression);
  // ContentsError, without the place: values that cannot be compared.
  bool matches(const nlohmann::ordered_json& record) const;
  std::vector<std::string> columns() const;

  struct Comparison {
    std::string column, op;
    std::variant<std::nullptr_t, bool, double, std::string> literal;
  };

 private:
  std::vector<std::vector<Comparison>> any_of_;  // lists of which all must hold
};

}  // namespace redco

#include "check/record.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "pipeline/pipeline.h"

namespace redco {

using Json = nlohmann::ordered_json;

std::string to_json(const CheckRecord& r) {
  return Json{
      {"state", r.state}, {"examples", Json::parse(examples_to_json(r.examples))}, {"lengths", r.lengths}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

CheckRecord check_record_of(const std::string& json) {
  const Json j = Json::parse(json);
  return {.state = j.at("state"),
          .examples = examples_from_json(j.at("examples").dump()),
          .lengths = j.at("lengths").get<std::vector<std::pair<i64, i64>>>()};
}

std::string example_difference(const Example& e, const Example& r) {
  if (e.ordinal != r.ordinal) return fmt::format("its ordinal is {} instead of {}", e.ordinal, r.ordinal);
  if (e.text != r.text || e.id != r.id) return "its text or id differs";
  const auto names = [](const Example& x) {
    std::vector<std::string> all = x.ids.names();
    for (const std::string& n : x.values.names()) all.push_back(n);
    return all;
  };
  if (names(e) != names(r))
    return fmt::format("its fields are {} instead of {}", fmt::join(names(e), ", "),
                       fmt::join(names(r), ", "));
  for (const auto& [name, ids] : e.ids)
    if (ids != r.ids.at(name)) return fmt::format("its field '{}' differs", name);
  constexpr float kRounding = 1e-4F;
  for (const auto& [name, values] : e.values) {
    const std::vector<float>& expected = r.values.at(name);
    if (values.size() != expected.size())
      return fmt::format("its field '{}' has {} values instead of {}", name, values.size(), expected.size());
    float largest = 0;
    for (const float v : expected) largest = std::max(largest, std::abs(v));
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!(std::abs(values[i] - expected[i]) <= kRounding * largest))
        return fmt::format("value {} of its field '{}' is {} instead of {}", i, name, values[i], expected[i]);
  }
  return "";
}

CheckRecord record_examples(const Dataset& data, const std::vector<i64>& numbers, std::string state) {
  CheckRecord r;
  r.state = std::move(state);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    r.examples.push_back(data.get(numbers[i]));
    r.lengths.emplace_back(data.length(numbers[i]), data.target_length(numbers[i]));
    for (const auto& [name, values] : r.examples.back().values)
      if (std::ranges::any_of(values, [](float v) { return !std::isfinite(v); }))
        throw ContentsError(
            "[check] example {} of the step: the field '{}' has a value that is not finite. redco check records "
            "the examples and needs finite values",
            i, name);
  }
  return r;
}

std::string examples_difference(const Dataset& data, const std::vector<i64>& numbers, const CheckRecord& r,
                                const std::vector<i64>& mine) {
  if (numbers.size() != r.examples.size())
    return fmt::format("the step has {} examples instead of {}", numbers.size(), r.examples.size());
  for (const i64 row : mine) {
    const i64 number = numbers[row];
    std::string what = example_difference(data.get(number), r.examples[row]);
    if (what.empty() && r.lengths[row] != std::pair(data.length(number), data.target_length(number)))
      what = fmt::format("its length is {} instead of {}", data.length(number), r.lengths[row].first);
    if (!what.empty()) return fmt::format("example {} of the step: {}", row, what);
  }
  return "";
}

}  // namespace redco

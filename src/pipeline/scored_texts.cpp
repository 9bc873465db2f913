#include "pipeline/scored_texts.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/words.h"

namespace redco {

using Json = nlohmann::ordered_json;

ScoredTexts scored_texts(const std::vector<std::string>& outputs) {
  ScoredTexts out;
  const auto text = [](const Json& v, const std::string& line) {
    if (!v.is_string())
      throw UsageError(
          "[pipeline] output() gives {}; expected an object with the texts `prediction` and `reference`, or "
          "`references`, a list",
          excerpt(line, 200));
    return v.get<std::string>();
  };
  for (const std::string& line : outputs) {
    const Json j = Json::parse(line);
    const auto member = [&](const char* name) { return j.contains(name) ? j.at(name) : Json(); };
    const Json prediction = member("prediction"), several = member("references");
    out.predictions.push_back(
        text(prediction.is_array() && !prediction.empty() ? prediction.at(0) : prediction, line));
    std::vector<std::string>& all = out.references.emplace_back();
    if (several.is_array() && !several.empty()) {
      for (const Json& one : several) all.push_back(text(one, line));
    } else {
      all.push_back(text(member("reference"), line));
    }
  }
  return out;
}

}  // namespace redco

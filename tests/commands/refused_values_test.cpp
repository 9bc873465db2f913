// The values of config keys that redco refuses, which docs/models.md lists.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/error.h"
#include "models/hf_keys.h"
#include "models/model.h"
#include "nn/layers.h"
#include "support/generated_docs.h"

namespace redco {
namespace {

using Json = nlohmann::ordered_json;

// Lines of at most 100 characters.
std::string wrapped(const std::string& text) {
  std::string out;
  std::size_t begin = 0;
  for (std::istringstream words(text); !words.eof();) {
    std::string word;
    words >> word;
    if (out.size() - begin + word.size() > 85) {
      out += "\n";
      begin = out.size();
    } else if (!out.empty()) {
      out += " ";
    }
    out += word;
  }
  return out + ".";
}

// A config of each family, from the models of the tests.
std::map<std::string, Json> configs() {
  std::map<std::string, Json> out;
  std::vector<std::filesystem::path> files;
  for (const auto& folder : std::filesystem::directory_iterator(REDCO_FIXTURES))
    if (exists(folder.path() / "config.json")) files.push_back(folder.path() / "config.json");
  std::ranges::sort(files);
  for (const auto& file : files) {
    const Json j = Json::parse(without_python_floats(test::slurp(file.string())));
    if (j.contains("model_type")) out.emplace(j["model_type"].get<std::string>(), j);
  }
  return out;
}

// Values that differ from an attribute's default, of its type.
std::vector<Json> other_values(const Json& value) {
  if (value.is_boolean()) return {!value.get<bool>()};
  if (value.is_number()) return {value.get<double>() + 1};
  if (value.is_string()) return {"other"};
  return {true, 1, "other"};
}

// What redco supports of the key, if it refuses this value; "": it does not.
std::string supported(Json config, const std::string& key, const Json& value) {
  config[key] = value;
  std::string text;
  try {
    make_model({config.dump(), "config.json"});
  } catch (const Error& e) {
    text = e.what();
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(": " + key + "=") == line.npos) continue;
    for (const std::string before : {"not supported; supported: ", "redco supports only "})
      if (const auto at = line.find(before); at != line.npos) {
        const std::string all = line.substr(at + before.size());
        return all.substr(0, all.find("; if"));
      }
  }
  return "";
}

// By key and supported values, the families whose transformers code reads the key and of which redco refuses
// other values; of most families, the ones that accept them.
std::string refused_table() {
  std::map<std::pair<std::string, std::string>, std::set<std::string>> refused;
  std::map<std::string, std::set<std::string>> readers;
  const std::string activations = fmt::format("{}", fmt::join(activation_names(), ", "));
  for (const auto& [family, config] : configs()) {
    const auto keys = hf_keys(family);
    if (!keys) continue;
    for (const auto& [key, standard] : keys->attributes) {
      if (!standard || is_common_key(key)) continue;
      readers[key].insert(family);
      std::string values;
      for (const Json& value : other_values(*standard))
        if (values.empty()) values = supported(config, key, value);
      if (values.starts_with("null")) values = "`null`";
      if (values == activations) values = "an activation's name";
      if (!values.empty()) refused[{key, values}].insert(family);
    }
  }
  std::string out = "| key | supported | families |\n|---|---|---|\n";
  for (const auto& [what, families] : refused) {
    std::set<std::string> others;
    std::ranges::set_difference(readers[what.first], families, std::inserter(others, others.end()));
    const bool most = families.size() > 4 && families.size() > others.size();
    std::string row = "| `" + what.first + "` | " + what.second + " | ";
    if (most) row += others.empty() ? "all" : "all but ";
    std::string separator;
    for (const std::string& family : most ? others : families) {
      const std::string cell = separator + "`" + family + "`";
      if (row.size() + cell.size() > 116) {
        out += row + " |\n";
        row = "| | | `" + family + "`";
      } else {
        row += cell;
      }
      separator = ", ";
    }
    out += row + " |\n";
  }
  return out + "\nActivations: " + wrapped(activations) + "\n";
}

TEST(DocsGenerated, RefusedValuesAreThoseOfTheReaders) {
  testing::expect_in_page("docs/models.md", "refused values", refused_table());
}

}  // namespace
}  // namespace redco

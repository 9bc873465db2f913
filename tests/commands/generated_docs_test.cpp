// The parts of the documentation that are made from the registries: the table of families in docs/models.md,
// and what works in README.md. REDCO_UPDATE_DOCS=1 build/tests/test_commands --gtest_filter=*Generated*
// writes them.
#include "support/generated_docs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "data/builtin/builtin.h"
#include "data/images/image_formats.h"
#include "env/make_environment.h"
#include "gguf/block_types.h"
#include "gguf/file_metadata.h"
#include "job/job_config.h"
#include "metrics/text_metrics.h"
#include "models/missing_families.h"
#include "models/model.h"
#include "optim/update_rule.h"
#include "pipelines/pipelines.h"

namespace redco {
namespace {

using testing::expect_in_page;

// A row of a table; cells of more than `width` characters continue in rows with an empty head.
std::string wrapped_row(std::string head, const std::string& empty, const std::vector<std::string>& names,
                        std::size_t width) {
  std::string out, row = head;
  for (const std::string& name : names) {
    const std::string cell = (row == head ? "`" : ", `") + name + "`";
    if (row.size() + cell.size() > width) {
      out += row + " |\n";
      head = empty;
      row = head + "`" + name + "`";
      continue;
    }
    row += cell;
  }
  return out + row + (row == head ? "|\n" : " |\n");
}

// The texts that a setting may have.
std::vector<std::string> choices_of(const std::string& key) {
  JobConfig job;
  std::vector<Setting> settings = settings_of(job);
  std::string rest = key;
  for (;;) {
    const std::size_t dot = rest.find('.');
    const auto at =
        std::ranges::find_if(settings, [&](const Setting& s) { return s.name == rest.substr(0, dot); });
    EXPECT_NE(at, settings.end()) << key;
    if (at == settings.end()) return {};
    if (dot == rest.npos) return at->choices;
    rest.erase(0, dot + 1);
    settings = std::vector<Setting>(at->fields);
  }
}

TEST(DocsGenerated, TheTableOfFamiliesIsThatOfTheRegistry) {
  std::map<std::string, std::vector<std::string>> presets;
  for (const std::string& name : preset_names())
    presets[nlohmann::ordered_json::parse(preset_config(name)).value("model_type", "")].push_back(name);
  std::string table = "| `model_type` | GGUF | presets |\n|---|---|---|\n";
  for (const std::string& family : model_families()) {
    const bool gguf = !gguf::architecture_of({{"model_type", family}}).empty();
    table +=
        wrapped_row("| `" + family + "` | " + (gguf ? "yes" : "") + " | ", "| | | ", presets[family], 98);
  }
  expect_in_page("docs/models.md", "families", table);
}

TEST(DocsGenerated, TheTableOfMissingFamiliesIsThatOfTheErrors) {
  const std::vector<std::string> supported = model_families();
  std::string table = "| `model_type` | redco lacks |\n|---|---|\n";
  std::vector<std::pair<std::string, std::string>> rows;  // families with the same reason share a row
  for (const MissingFamily& f : missing_families()) {
    EXPECT_FALSE(std::ranges::count(supported, f.model_type)) << f.model_type;
    if (rows.empty() || rows.back().second != f.lacks)
      rows.emplace_back(fmt::format("`{}`", f.model_type), f.lacks);
    else
      rows.back().first += fmt::format(", `{}`", f.model_type);
  }
  for (const auto& [names, lacks] : rows) table += fmt::format("| {} | {} |\n", names, lacks);
  expect_in_page("docs/models.md", "missing families", table);
}

TEST(DocsGenerated, WhatWorksIsThatOfTheRegistries) {
  std::vector<std::string> images, gguf_types, text_metrics;
  for (const ImageFormat& f : image_formats()) images.emplace_back(f.name);
  for (u32 n = 0; n < 64; ++n)
    if (gguf::block_type(n)) gguf_types.push_back(gguf::name_of_type(n));
  for (const auto& [name, values] : built_in_text_metrics()) text_metrics.push_back(name);
  std::string table = "| part | names |\n|---|---|\n";
  for (const auto& [part, names] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"pipelines", pipeline_names()},
           {"model families", model_families()},
           {"element types of GGUF files", gguf_types},
           {"data formats", choices_of("data.format")},
           {"image formats", images},
           {"optimizers", optimizer_names()},
           {"schedules", choices_of("train.schedule")},
           {"losses of preferences", choices_of("dpo.loss_type")},
           {"losses of GRPO", choices_of("grpo.loss_type")},
           {"weights in memory", choices_of("model.weight_dtype")},
           {"metrics of texts", text_metrics},
           {"RL environments", environment_names()}}) {
    EXPECT_FALSE(names.empty()) << part;
    table += wrapped_row("| " + part + " | ", "| | ", names, 116);
  }
  expect_in_page("README.md", "what works", table);
}

}  // namespace
}  // namespace redco

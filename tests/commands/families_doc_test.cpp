// The table of families in docs/models.md, which is made from the registry. REDCO_UPDATE_DOCS=1
// build/tests/test_commands --gtest_filter=*Generated* writes it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "gguf/file_metadata.h"
#include "models/model.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

constexpr const char* kBegin = "<!-- families: from the registry -->\n";
constexpr const char* kEnd = "<!-- end of families -->\n";

// Rows of at most 100 characters; the others of a family have an empty first cell.
std::string families_table() {
  std::map<std::string, std::vector<std::string>> presets;
  for (const std::string& name : preset_names())
    presets[nlohmann::ordered_json::parse(preset_config(name)).value("model_type", "")].push_back(name);
  std::string out = "| `model_type` | GGUF | presets |\n|---|---|---|\n";
  for (const std::string& family : model_families()) {
    const bool gguf = !gguf::architecture_of({{"model_type", family}}).empty();
    std::string head = "| `" + family + "` | " + (gguf ? "yes" : "") + " | ", row = head;
    for (const std::string& name : presets[family]) {
      const std::string cell = (row == head ? "`" : ", `") + name + "`";
      if (row.size() + cell.size() > 98) {
        out += row + " |\n";
        head = row = "| | | ";
        row += "`" + name + "`";
        continue;
      }
      row += cell;
    }
    out += row + (row == head ? "|\n" : " |\n");
  }
  return out;
}

TEST(FamiliesGenerated, TheTableIsThatOfTheRegistry) {
  const std::string path = REDCO_SOURCE_DIR "/docs/models.md";
  const std::string page = test::slurp(path);
  const auto begin = page.find(kBegin), end = page.find(kEnd);
  ASSERT_TRUE(begin != page.npos && end != page.npos && begin < end);
  const std::size_t from = begin + std::string(kBegin).size();
  const std::string table = "\n" + families_table() + "\n";
  if (std::getenv("REDCO_UPDATE_DOCS"))
    test::spill(path, page.substr(0, from) + table + page.substr(end));
  else
    EXPECT_EQ(page.substr(from, end - from), table)
        << "run REDCO_UPDATE_DOCS=1 build/tests/test_commands --gtest_filter=*Generated*";
}

}  // namespace
}  // namespace redco

// The families declare the roles that are also found from names, shapes and order. So the test covers both.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "models/model_testing.h"

namespace redco {
namespace {

std::string cut_of(const ShardedSpecs& s, size_t i) {
  return fmt::format("dim {} by '{}'", s.sharding.rules[i].dim, s.sharding.rules[i].rule);
}

// Only the declaration tells that this layer of dit is the second of a pair: the first one makes the time's
// embedding, which other layers read too. And that the vectors of latent attention belong to all heads; and
// which layer of nemotron_h is the router of experts that have another width than the tokens.
bool only_declared(const std::string& name) {
  return name.starts_with("t_block.1.") || name.find("q_a_proj") != std::string::npos ||
         name.find("kv_a_proj") != std::string::npos || name.find("mixer.gate.weight") != std::string::npos ||
         name.find("mixer.shared_experts.") != std::string::npos;
}

// The rows, where the order of the names in a pattern, (a|b).weight, does not matter.
std::string table_of(std::vector<RuleRow> rows) {
  for (RuleRow& r : rows) {
    const size_t begin = r.pattern.find('('), end = r.pattern.find(')');
    if (begin == r.pattern.npos || end == r.pattern.npos) continue;
    std::vector<std::string> names;
    std::stringstream list(r.pattern.substr(begin + 1, end - begin - 1));
    for (std::string name; std::getline(list, name, '|');) names.push_back(name);
    std::ranges::sort(names);
    r.pattern.replace(begin + 1, end - begin - 1, fmt::format("{}", fmt::join(names, "|")));
  }
  return format_rules_table(rows);
}

void expect_found_roles(const Model& model) {
  std::vector<ParamSpec> found = model.params().specs;
  for (ParamSpec& s : found) s.role.reset();
  for (const int shards : {2, 3, 8}) {
    const ShardedSpecs a = shard_specs(model.params().specs, shards), b = shard_specs(found, shards);
    bool all = true;
    for (size_t i = 0; i < found.size(); ++i) {
      const std::string where = fmt::format("{} on {} shards", found[i].name, shards);
      if (only_declared(found[i].name)) {
        EXPECT_NE(cut_of(a, i), cut_of(b, i)) << where;
        all = false;
      } else {
        EXPECT_EQ(cut_of(a, i), cut_of(b, i)) << where;
      }
    }
    if (all) EXPECT_EQ(table_of(a.sharding.rows), table_of(b.sharding.rows));
  }
}

TEST(DeclaredRoles, EqualTheFoundOnesInPresets) {
  for (const std::string& name : preset_names()) {
    SCOPED_TRACE(name);
    expect_found_roles(*make_model(ModelConfig(preset_config(name), name)));
  }
}

TEST(DeclaredRoles, EqualTheFoundOnesInFixtures) {
  int models = 0;
  for (const auto& folder : std::filesystem::directory_iterator(REDCO_FIXTURES)) {
    if (!std::filesystem::exists(folder.path() / "config.json")) continue;
    SCOPED_TRACE(folder.path().filename().string());
    expect_found_roles(*redco::testing::load_model(folder.path().string()));
    ++models;
  }
  EXPECT_GT(models, 20);
}

}  // namespace
}  // namespace redco

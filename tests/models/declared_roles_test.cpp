// The families declare the roles that are also found from names, shapes and order. So the test covers both.
#include <gtest/gtest.h>

#include <filesystem>

#include "models/model_testing.h"

namespace redco {
namespace {

std::string cut_of(const ShardedSpecs& s, size_t i) {
  return fmt::format("dim {} by '{}'", s.sharding.rules[i].dim, s.sharding.rules[i].rule);
}

// Only the declaration tells that this layer of dit is the second of a pair: the first one makes the time's
// embedding, which other layers read too. And that the vectors of latent attention belong to all heads.
bool only_declared(const std::string& name) {
  return name.starts_with("t_block.1.") || name.find("q_a_proj") != std::string::npos ||
         name.find("kv_a_proj") != std::string::npos;
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
    if (all) EXPECT_EQ(format_rules_table(a.sharding.rows), format_rules_table(b.sharding.rows));
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

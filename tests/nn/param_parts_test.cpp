// Parameters of several owners in one tree: names, aliases, sharding rules, adapters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "models/model.h"
#include "models/spec_builder.h"
#include "nn/lora.h"
#include "support/error_text.h"
#include "support/ranks.h"

namespace redco {
namespace {

using namespace redco::testing;
using ::testing::HasSubstr;

const char* kTiny =
    R"({"model_type": "gpt2", "vocab_size": 17, "n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 8})";

ModelParams two_models() {
  const auto model = make_model({kTiny, "test"});
  ModelParams all = model->params();
  ParamSpec head;
  head.name = head.stored.name = "v_head.weight";
  head.shape = head.stored.shape = {1, 8};
  head.kind = ParamKind::linear;
  head.owner = kExtra;
  all.specs.push_back(head);
  all.add("reference", model->params(), true, std::nullopt);
  return all;
}

ParamTree tree_of(const ModelParams& params) {
  return make_params(params, shard_specs(params.specs, 1).layouts);
}

TEST(ParamParts, ASubsetKeepsItsAliases) {
  on_one_rank([](Context&) {
    const auto model = make_model({kTiny, "test"});
    const ParamTree tree = tree_of(model->params());
    std::vector<bool> tables, others;
    for (const ParamSpec& s : tree.specs()) {
      tables.push_back(s.name == "transformer.wte.weight");
      others.push_back(!tables.back());
    }
    EXPECT_TRUE(tree.subset(tables)["lm_head.weight"].same_bytes(tree["transformer.wte.weight"]));
    EXPECT_FALSE(tree.subset(others).has("lm_head.weight"));
    const ParamTree joined = ParamTree::join({tree.subset(others), tree.subset(tables)});
    EXPECT_TRUE(joined["lm_head.weight"].same_bytes(tree["transformer.wte.weight"]));
  });
}

TEST(ParamParts, APartHasTheNamesOfItsOwner) {
  on_one_rank([](Context&) {
    const ModelParams all = two_models();
    const ParamTree tree = tree_of(all);
    const ParamTree reference = tree.part("reference"), own = tree.part(""), extra = tree.part(kExtra);
    EXPECT_EQ(reference.size() + own.size() + extra.size(), tree.size());
    EXPECT_TRUE(reference["transformer.wte.weight"].same_bytes(tree["reference/transformer.wte.weight"]));
    EXPECT_TRUE(reference["lm_head.weight"].same_bytes(reference["transformer.wte.weight"]));
    EXPECT_FALSE(own["transformer.wte.weight"].same_bytes(reference["transformer.wte.weight"]));
    EXPECT_EQ(extra.specs().at(0).name, "v_head.weight");
    for (const ParamSpec& s : reference.specs()) {
      EXPECT_FALSE(s.trained()) << s.name;
      EXPECT_EQ(s.stored.name.find('/'), std::string::npos);
    }
    EXPECT_TRUE(own["transformer.wte.weight"].watched().node());
    EXPECT_FALSE(tree.watched()["reference/transformer.wte.weight"].node());
  });
}

// Each model is sharded as alone, also if another one has rules.
TEST(ParamParts, RulesSeeOneModelAtATime) {
  const auto model = make_model({kTiny, "test"});
  const ShardedSpecs alone = shard_specs(model->params().specs, 2);
  const ModelParams all = two_models();
  const CustomRule whole{".*", {std::nullopt, std::nullopt}, "reference"};
  const ShardedSpecs together = shard_specs(all.specs, 2), ruled = shard_specs(all.specs, 2, {whole});
  std::map<std::string, Layout> layouts;
  for (std::size_t i = 0; i < alone.layouts.size(); ++i)
    layouts[model->params().specs[i].name] = alone.layouts[i];
  int cut = 0;
  for (std::size_t i = 0; i < all.specs.size(); ++i) {
    const ParamSpec& s = all.specs[i];
    if (s.owner == kExtra) continue;
    const std::string name = s.owner.empty() ? s.name : s.name.substr(s.owner.size() + 1);
    EXPECT_EQ(together.layouts[i], layouts.at(name)) << s.name;
    if (s.owner.empty()) EXPECT_EQ(ruled.layouts[i], layouts.at(name)) << s.name;
    if (s.owner == "reference" && s.shape.size() == 2) {
      EXPECT_TRUE(ruled.layouts[i][Axis::mp].is_replicated()) << s.name;
      cut += together.layouts[i][Axis::mp].is_sharded();
    }
  }
  EXPECT_GE(cut, 4);
}

// Given values, and a copy of a copy, on every mesh; what was loaded is not overwritten.
TEST(ParamParts, InitialValuesAreGivenOrCopied) {
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{1, 2}, Mesh{2, 2}})
    redco::testing::on_mesh(mesh, [](Context& c) {
      ModelParams m;
      SpecBuilder b(m);
      b.linear("fc1", 3, 2, false, 1);
      const auto values = std::make_shared<const std::vector<float>>(std::vector<float>{1, 2, 3, 4, 5, 6});
      m.specs.back().init = {.kind = Init::Kind::values, .values = values};
      const auto copy = [&](const std::string& name, Shape shape, const std::string& source) {
        b.add(name, shape, ParamKind::other, {.kind = Init::Kind::copy, .source = source});
      };
      copy("second", {3, 2}, "first");
      copy("first", {3, 2}, "fc1.weight");
      const auto made_tree = [&] { return make_params(m, shard_specs(m.specs, c.mesh().mp()).layouts); };
      ParamTree tree = made_tree();
      initialize(tree, 1);
      copy_initial_values(tree, {"first", "second"});
      for (const char* name : {"fc1.weight", "first", "second"})
        EXPECT_EQ(to_values(tree[name]), (std::vector<double>{1, 2, 3, 4, 5, 6})) << name;
      c.run(&Kernels::fill, tree["first"], 7);
      copy_initial_values(tree, {"second"});
      EXPECT_EQ(to_values(tree["second"])[0], 7);
      copy("third", {2, 3}, "first");
      ParamTree other = made_tree();
      initialize(other, 1);
      EXPECT_THAT(error_text<UsageError>([&] { copy_initial_values(other, {"third"}); }),
                  ::testing::HasSubstr("third (2, 3) begins as a copy of 'first', which is of shape (3, 2)"));
    });
}

TEST(ParamParts, AMissingParameterNamesTheNearest) {
  on_one_rank([](Context&) {
    const ParamTree tree = tree_of(two_models());
    EXPECT_THAT(error_text<BugError>([&] { tree["v_head.wieght"]; }),
                HasSubstr("no parameter is named 'v_head.wieght'; did you mean 'v_head.weight'?"));
  });
}

TEST(ParamParts, WithoutAdaptersTheWholeModelMustBeFrozen) {
  on_one_rank([](Context&) {
    const auto model = make_model({kTiny, "test"});
    const std::vector<std::string> modules = {"transformer.h.0.attn.c_attn"};
    const ParamTree lora =
        tree_of(with_lora(model->params(), {.rank = 2, .modules_to_save = {}}, modules, "test"));
    const ParamTree base = lora.without_adapters();
    EXPECT_EQ(base.size(), model->params().specs.size());
    EXPECT_TRUE(base["lm_head.weight"].same_bytes(lora["lm_head.weight"]));
    EXPECT_THAT(error_text<UsageError>([&] { tree_of(model->params()).without_adapters(); }),
                HasSubstr("is trained as a whole"));
  });
}

}  // namespace
}  // namespace redco

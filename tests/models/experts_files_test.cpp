// A mixture of experts in files: files have one tensor per expert, redco has one parameter for all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ckpt/params_io.h"
#include "ckpt/params_save.h"
#include "models/model_testing.h"
#include "support/temp_dir.h"

namespace redco::testing {
namespace {

// Also experts in one tensor, with rows in turn, in MXFP4; and BLOOM's rows in turn, head by head.
class ExpertsFiles : public ::testing::TestWithParam<const char*> {};
TEST_P(ExpertsFiles, SavingRestoresTheTensorsThatWereRead) {
  const std::string folder = fixture(GetParam());
  const auto model = load_model(folder);
  const auto canonical = [&](const std::string& name) { return model->canonical_name(name); };
  const ckpt::ModelFiles files = ckpt::ModelFiles::open(folder);
  // Experts sharded unevenly, with replicas, and more shards than the five experts (each expert is sharded).
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{1, 3}, Mesh{2, 2}, Mesh{1, 6}}) {
    SCOPED_TRACE(fmt::format("{}x{}", mesh.dp(), mesh.mp()));
    const test::TempDir out;
    run_threads(mesh.ranks(), [&](Group& world) {
      Context context(mesh, world.split(0), testing::test_queue());
      Context::Use use(context);
      ParamTree tree = make_params(model->params(), shard_specs(model->params().specs, mesh.mp()).layouts);
      ckpt::load_params(tree, files, canonical, model->params().aliases);
      const std::vector<ckpt::SavedTree> trees = {{"", &tree}};
      // Files so small that the experts of one layer are in several files.
      const ckpt::ModelPlan plan = ckpt::plan_params(trees, ckpt::StoredType::f32, "model", 20000);
      ckpt::save_params(trees, plan, out.path());
    });
    const ckpt::ModelFiles again = ckpt::ModelFiles::open(out.path());
    ASSERT_EQ(again.tensors().size(), files.tensors().size());
    for (size_t i = 0; i < files.tensors().size(); ++i) {
      const auto &a = files.tensors()[i], &b = again.tensors()[i];
      EXPECT_EQ(a.entry->name, b.entry->name);
      EXPECT_EQ(a.entry->shape, b.entry->shape);
      EXPECT_EQ(a.file->read<float>(*a.entry), b.file->read<float>(*b.entry)) << a.entry->name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, ExpertsFiles,
                         ::testing::Values("mixtral", "gpt_oss", "gpt_oss-mxfp4", "bloom"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// Loss and gradients with experts sharded by inefficient rules.
TEST(ExpertsNumbers, AnyRuleGivesTheSameNumbers) {
  using Dims = std::vector<std::optional<std::string>>;
  const std::optional<std::string> none;
  for (const Dims& dims : {Dims{none, none, "mp"}, Dims{none, "mp", none}, Dims{none, none, none}})
    for (const std::string which : {"w1", "w[13]", "w[123]"})
      for (const Mesh& mesh : {Mesh{1, 2}, Mesh{2, 2}}) {
        SCOPED_TRACE(which);
        const CustomRule rule{".*experts." + which + ".weight", dims};
        expect_matches(fixture("mixtral"), run_model(fixture("mixtral"), mesh, {.rules = {rule}}));
      }
}

TEST(ExpertsNumbers, RecomputedAndWithMoreShardsThanExperts) {
  expect_matches(fixture("mixtral"), run_model(fixture("mixtral"), {1, 6}));
  EXPECT_EQ(run_model(fixture("mixtral"), {1, 2}, {.recompute = true}),
            run_model(fixture("mixtral"), {1, 2}));
  expect_matches(fixture("gpt_oss"), run_model(fixture("gpt_oss"), {1, 6}));
}

}  // namespace
}  // namespace redco::testing

// Parameters to files: the same bytes on all meshes and with any size of the copy, and errors of the disk.
#include "ckpt/params_save.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/syscalls.h"
#include "comm/group.h"
#include "kernels/threads.h"
#include "ops/create.h"
#include "support/device.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

// As GPT-2 and mixtures of experts store them: three parameters in one transposed tensor, a stack of tensors.
ModelParams model_of_all_kinds() {
  constexpr i64 kWidth = 48, kExperts = 3;
  ModelParams p;
  for (i64 k = 0; k < 3; ++k)
    p.specs.push_back({.name = fmt::format("h.0.attn.c_attn.weight[{}]", k),
                       .shape = {kWidth, kWidth},
                       .kind = ParamKind::linear,
                       .stored = {"h.0.attn.c_attn.weight", {kWidth, 3 * kWidth}, true, k * kWidth}});
  p.specs.push_back({.name = "h.0.attn.c_proj.weight",
                     .shape = {kWidth, kWidth},
                     .kind = ParamKind::linear,
                     .stored = {"h.0.attn.c_proj.weight", {kWidth, kWidth}, false, 0}});
  p.specs.push_back({.name = "h.0.experts.weight",
                     .shape = {kExperts, 2 * kWidth, kWidth},
                     .kind = ParamKind::other,
                     .stored = {"h.0.experts.{}.weight", {2 * kWidth, kWidth}, false, 0, kExperts}});
  p.specs.push_back({.name = "wte.weight",
                     .shape = {101, kWidth},
                     .kind = ParamKind::embedding,
                     .stored = {"wte.weight", {101, kWidth}, false, 0}});
  return p;
}

void with_saved_tree(const Mesh& mesh, const std::function<void(Context&, const ParamTree&)>& body) {
  run_threads(mesh.ranks(), [&](Group& g) {
    kernels::set_threads(1);
    Context c(mesh, g.split(0), redco::testing::test_queue());
    const Context::Use use(c);
    const ModelParams p = model_of_all_kinds();
    ParamTree tree = make_params(p, shard_specs(p.specs, mesh.mp()).layouts);
    for (size_t i = 0; i < tree.size(); ++i) fill_normal(tree.values()[i], 100 + i, 1);
    body(c, tree);
  });
}

// Several files, which the ranks write in turn.
ckpt::ModelPlan files_of(const ParamTree& tree) {
  return ckpt::plan_params({{"", &tree}}, ckpt::StoredType::f32, "model", 40'000);
}

TEST(ParamsSave, TheCopyOfAnySizeGivesTheSameFiles) {
  std::map<std::string, std::string> want;
  for (const Mesh& mesh : {Mesh(1, 1), Mesh(1, 2), Mesh(2, 1), Mesh(2, 2), Mesh(1, 3)})
    for (const bool small : {false, true}) {
      const test::TempDir dir;
      with_saved_tree(mesh, [&](Context& c, const ParamTree& tree) {
        const std::vector<ckpt::SavedTree> trees = {{"", &tree}};
        const ckpt::ModelPlan plan = files_of(tree);
        ASSERT_GT(plan.files.size(), 2U);
        const ckpt::CopiedBytes bytes = ckpt::copied_bytes(trees, plan);
        for (size_t f = 0; f < plan.files.size(); ++f)
          EXPECT_EQ(bytes.of_file[f], plan.files[f].bytes - std::ssize(plan.files[f].head));
        const i64 all = std::accumulate(bytes.of_file.begin(), bytes.of_file.end(), i64{0});
        ckpt::CopyQueue queue({.copy_bytes = small ? bytes.largest_piece : all, .windows = small ? 1 : 7});
        ckpt::HandedFiles handed = ckpt::hand_over_params(trees, plan, dir.path(), queue);
        for (const Tensor& t : tree.values()) fill_normal(t, 7, 1);
        c.world().together([&] { handed.finish(); });
      });
      std::map<std::string, std::string> files;
      for (const auto& e : std::filesystem::directory_iterator(dir.path()))
        files[e.path().filename()] = test::slurp(e.path());
      if (want.empty()) want = files;
      EXPECT_EQ(files, want) << mesh.dp() << " x " << mesh.mp() << (small ? ", a small copy" : "");
    }
}

// An error of the disk on one rank is the error of all, after all ranks have handed over their rows.
TEST(ParamsSave, AnErrorOfTheDiskIsThatOfAllRanks) {
  const test::TempDir dir;
  sys::set_hook([](const sys::Call& c) {
    const bool fails = c.op == sys::Op::write && c.path.find("model-00002") != std::string::npos;
    return fails ? sys::Verdict{sys::Verdict::fail, ENOSPC} : sys::Verdict{};
  });
  with_saved_tree({1, 2}, [&](Context&, const ParamTree& tree) {
    try {
      ckpt::save_params({{"", &tree}}, files_of(tree), dir.path());
      ADD_FAILURE() << "no error";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ExitCode::io);
      EXPECT_THAT(e.what(), ::testing::HasSubstr("No space left on device"));
    }
  });
  sys::set_hook({});
  for (const auto& e : std::filesystem::directory_iterator(dir.path()))
    EXPECT_EQ(e.path().filename().string().find("model-00002"), std::string::npos) << e.path();
}

}  // namespace
}  // namespace redco

// Parameters to files and back: across meshes, with memory limited to a rank's own shard.
#include "ckpt/params_io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/error.h"
#include "base/sanitized.h"
#include "base/syscalls.h"
#include "ckpt/params_save.h"
#include "ckpt/safetensors_write.h"
#include "comm/group.h"
#include "kernels/threads.h"
#include "ops/create.h"
#include "support/device.h"
#include "support/error_text.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

// A fused, transposed projection, a plain linear, an embedding and a norm, as GPT-2 stores them, and CLIP's
// scalar.
ModelParams small_model(i64 width, i64 rows) {
  ModelParams p;
  i64 at = 0;
  for (const char* part : {"q", "k", "v"}) {
    p.specs.push_back({.name = fmt::format("h.0.attn.c_attn.weight[{}]", part),
                       .shape = {width, width},
                       .kind = ParamKind::linear,
                       .stored = {"h.0.attn.c_attn.weight", {width, 3 * width}, true, at}});
    at += width;
  }
  p.specs.push_back({.name = "h.0.attn.c_proj.weight",
                     .shape = {width, width},
                     .kind = ParamKind::linear,
                     .stored = {"h.0.attn.c_proj.weight", {width, width}, false, 0}});
  p.specs.push_back({.name = "wte.weight",
                     .shape = {rows, width},
                     .kind = ParamKind::embedding,
                     .stored = {"wte.weight", {rows, width}, false, 0}});
  p.specs.push_back({.name = "logit_scale",
                     .shape = {1},
                     .kind = ParamKind::bias,
                     .stored = {"logit_scale", {}, false, 0}});
  p.specs.push_back({.name = "ln_f.weight",
                     .shape = {width},
                     .kind = ParamKind::norm,
                     .stored = {"ln_f.weight", {width}, false, 0}});
  return p;
}

// Parts whose rows are stored in turn, some for each head (GPT-NeoX), and matrices of all experts in one
// tensor (Granite).
ModelParams blocks_model() {
  ModelParams p;
  const auto part = [&](const char* name, i64 row, i64 block) {
    p.specs.push_back(
        {.name = fmt::format("qkv.weight[{}]", name),
         .shape = {6 * block, 5},
         .kind = ParamKind::linear,
         .stored = {.name = "qkv.weight", .shape = {36, 5}, .row = row, .block = block, .step = 6},
         .heads = {0, 6, 6, block, false}});
  };
  part("q", 0, 2);
  part("k", 2, 1);
  part("v", 3, 3);
  for (const i64 row : {0, 4})
    p.specs.push_back(
        {.name = fmt::format("experts.weight[{}]", row),
         .shape = {3, 4, 5},
         .kind = ParamKind::linear,
         .stored = {.name = "experts.weight", .shape = {8, 5}, .row = row, .stacked = 3, .whole_stack = true},
         .cut = row == 0 ? 0 : 1});
  return p;
}

void on_mesh(const Mesh& mesh, const std::function<void(Context&)>& body) {
  run_threads(mesh.ranks(), [&](Group& g) {
    kernels::set_threads(1);
    Context c(mesh, g.split(0), redco::testing::test_queue());
    Context::Use use(c);
    body(c);
  });
}

ParamTree tree_on(const Mesh& mesh, const ModelParams& p) {
  return make_params(p, shard_specs(p.specs, mesh.mp()).layouts);
}

void save(const std::string& folder, const ParamTree& tree) {
  ckpt::save_params({{"", &tree}}, ckpt::plan_params({{"", &tree}}, ckpt::StoredType::f32, "model", 1 << 20),
                    folder);
}
void load(const std::string& folder, ParamTree& tree,
          const std::map<std::string, std::string>& aliases = {}) {
  ckpt::load_params(
      tree, ckpt::ModelFiles::open(folder), [](const std::string& n) { return n; }, aliases);
}

// A model with values of every parameter, saved in the folder.
ParamTree saved_tree(const std::string& folder, Context& c, const ModelParams& model) {
  ParamTree tree = tree_on(c.mesh(), model);
  for (size_t i = 0; i < tree.size(); ++i) fill_normal(tree.values()[i], 100 + i, 1);
  save(folder, tree);
  return tree;
}

void expect_every_mesh_loads_what_another_saved(const ModelParams& model) {
  test::TempDir dir;
  std::vector<std::vector<double>> want;
  on_mesh({1, 1}, [&](Context& c) {
    ParamTree tree = tree_on(c.mesh(), model);
    for (size_t i = 0; i < tree.size(); ++i) fill_normal(tree.values()[i], 100 + i, 1);
    for (const Tensor& t : tree.values()) want.push_back(to_values(t));
  });
  const std::vector<Mesh> meshes = {{1, 1}, {1, 2}, {2, 1}, {2, 2}, {1, 3}};
  for (const Mesh& from : meshes) {
    const std::string folder = dir.path() + fmt::format("/{}x{}", from.dp(), from.mp());
    ASSERT_EQ(mkdir(folder.c_str(), 0755), 0);
    on_mesh(from, [&](Context& c) { saved_tree(folder, c, model); });
    for (const Mesh& to : meshes)
      on_mesh(to, [&](Context& c) {
        ParamTree tree = tree_on(c.mesh(), model);
        load(folder, tree);
        for (size_t i = 0; i < tree.size(); ++i) EXPECT_EQ(to_values(tree.values()[i]), want[i]);
      });
  }
}

TEST(ParamsIo, EveryMeshLoadsWhatAnotherSaved) {
  expect_every_mesh_loads_what_another_saved(small_model(48, 101));  // uneven on 2 and 3
  expect_every_mesh_loads_what_another_saved(blocks_model());
}

// A vocabulary table gets more rows, which are the mean of those in the file, on every mesh.
TEST(ParamsIo, NewRowsOfAVocabularyAreTheMean) {
  const i64 stored = 101, rows = 107, width = 48;
  test::TempDir dir;
  std::vector<double> table;
  on_mesh({1, 1}, [&](Context& c) {
    const ParamTree tree = saved_tree(dir.path(), c, small_model(width, stored));
    table = to_values(tree["wte.weight"]);
  });
  std::vector<double> mean(width);
  for (size_t k = 0; k < table.size(); ++k) mean[k % width] += table[k] / stored;
  for (const Mesh& mesh : std::vector<Mesh>{{1, 1}, {2, 2}, {1, 3}})
    on_mesh(mesh, [&](Context& c) {
      ParamTree tree = tree_on(c.mesh(), small_model(width, rows));
      const auto read = [&](const ckpt::MoreRows& more) {
        ckpt::load_params(
            tree, ckpt::ModelFiles::open(dir.path()), [](const std::string& n) { return n; }, {}, "", nullptr,
            more);
      };
      EXPECT_THROW(read({}), ContentsError);
      EXPECT_THROW(read({100, rows}), ContentsError);
      read({stored, rows});
      const std::vector<double> got = to_values(tree["wte.weight"]);
      ASSERT_EQ(got.size(), static_cast<size_t>(rows * width));
      for (size_t k = 0; k < got.size(); ++k)
        if (k < table.size())
          EXPECT_EQ(got[k], table[k]);
        else
          EXPECT_NEAR(got[k], mean[k % width], 1e-6);
    });
}

// torch.compile and DDP leave prefixes in the names of saved states.
TEST(ParamsIo, PrefixesOfAllNamesAreRemoved) {
  const ModelParams model = small_model(8, 11);
  test::TempDir dir;
  on_mesh({1, 1}, [&](Context& c) {
    const ParamTree tree = saved_tree(dir.path(), c, model);
    const ckpt::ModelFiles files = ckpt::ModelFiles::open(dir.path());
    for (const std::string prefix : {"_orig_mod.", "module._orig_mod.", "model.", "x."}) {
      test::TempDir other;
      std::vector<ckpt::TensorPlan> plan;
      for (const auto& l : files.tensors())
        plan.push_back({prefix + l.entry->name, ckpt::StoredType::f32, l.entry->shape});
      auto writer = ckpt::SafetensorsWriter::create(other.path(), ckpt::plan_file("model.safetensors", plan));
      for (const auto& l : files.tensors())
        writer.write(prefix + l.entry->name, ckpt::whole(l.entry->shape),
                     l.file->read<float>(*l.entry).data());
      writer.commit();
      ParamTree read = tree_on(c.mesh(), model);
      if (prefix == "x.") {
        EXPECT_THROW(load(other.path(), read), ContentsError);
        continue;
      }
      ::testing::internal::CaptureStderr();
      load(other.path(), read);
      EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::HasSubstr("begin with " + prefix));
      for (size_t i = 0; i < tree.size(); ++i)
        EXPECT_EQ(to_values(read.values()[i]), to_values(tree.values()[i])) << prefix;
    }
  });
}

TEST(ParamsIo, AMissingHeadNamesBothRemedies) {
  ModelParams model = small_model(8, 11);
  test::TempDir dir;
  on_mesh({1, 1}, [&](Context& c) {
    save(dir.path(), tree_on(c.mesh(), model));
    model.specs.push_back({.name = "lm_head.weight",
                           .shape = {11, 8},
                           .kind = ParamKind::linear,
                           .stored = {"lm_head.weight", {11, 8}, false, 0}});
    ParamTree tree = tree_on(c.mesh(), model);
    try {
      load(dir.path(), tree);
      ADD_FAILURE();
    } catch (const ContentsError& e) {
      EXPECT_THAT(e.what(), ::testing::AllOf(::testing::HasSubstr("missing: lm_head.weight"),
                                             ::testing::HasSubstr("tie_word_embeddings"),
                                             ::testing::HasSubstr("get the file that has the head")));
    }
  });
}

// The other replicas wait in the gathers of its blocks; none may hang.
TEST(ParamsIo, AReadThatFailsOnOneRankIsTheErrorOfAll) {
  const ModelParams model = small_model(48, 101);
  test::TempDir dir;
  on_mesh({1, 1}, [&](Context& c) { saved_tree(dir.path(), c, model); });
  on_mesh({3, 1}, [&](Context& c) {
    ParamTree tree = tree_on(c.mesh(), model);
    const int rank = c.rank();
    c.world().on_first([] {
      sys::set_hook([](const sys::Call& call) {
        const bool fails = call.op == sys::Op::read && call.bytes > 1000 && Context::current().rank() == 1;
        return fails ? sys::Verdict{.kind = sys::Verdict::fail, .error = EIO} : sys::Verdict{};
      });
    });
    try {
      load(dir.path(), tree);
      ADD_FAILURE() << "rank " << rank << " has loaded a file that rank 1 can't read";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ExitCode::io) << e.what();
      EXPECT_THAT(e.what(), ::testing::HasSubstr("Input/output error"));
      EXPECT_TRUE(was_agreed(e.what()));
    }
  });
  sys::set_hook({});
}

TEST(ParamsIo, FilesOfAnotherModelAreErrors) {
  const ModelParams model = small_model(8, 10);
  test::TempDir dir;
  on_mesh({1, 1}, [&](Context& c) {
    saved_tree(dir.path(), c, model);
    auto message = [&](const ModelParams& other) -> std::string {
      try {
        ParamTree t = tree_on(c.mesh(), other);
        load(dir.path(), t);
      } catch (const ContentsError& e) {
        return e.what();
      }
      return "no error";
    };
    ModelParams wider = small_model(8, 11);
    EXPECT_THAT(
        message(wider),
        ::testing::HasSubstr(
            "wte.weight has shape (10, 8), but the model's config (config.json and the job's model.* keys) gives (11, 8)"));
    ModelParams more = model;
    more.specs.push_back(
        {.name = "h.1.x", .shape = {8}, .kind = ParamKind::norm, .stored = {"h.1.x", {8}, false, 0}});
    EXPECT_THAT(message(more), ::testing::HasSubstr("missing: h.1.x"));
    ModelParams fewer = model;
    fewer.specs.pop_back();
    EXPECT_THAT(message(fewer), ::testing::HasSubstr("no such parameters: ln_f.weight"));
    // One error names all differences.
    ModelParams other = wider;
    other.specs.pop_back();
    other.specs.push_back(more.specs.back());
    EXPECT_THAT(message(other), ::testing::AllOf(::testing::HasSubstr(
                                                     "1 of the model's tensors are missing: h.1.x; the files "
                                                     "have unknown tensors: ln_f.weight"),
                                                 ::testing::HasSubstr("wte.weight has shape (10, 8)")));
  });
}

// `plan`, `validate` and the first process of `train` report what loading would.
TEST(ParamsIo, APlannedRankChecksFilesWithoutReadingValues) {
  const ModelParams model = small_model(8, 10);
  test::TempDir dir;
  on_mesh({1, 1}, [&](Context& c) { saved_tree(dir.path(), c, model); });
  const auto files = ckpt::ModelFiles::open(dir.path());
  sys::set_hook([](const sys::Call& call) {
    return call.op == sys::Op::read ? sys::Verdict{.kind = sys::Verdict::fail, .error = EIO} : sys::Verdict{};
  });
  const auto error_with = [&](const ModelParams& p, const ckpt::MoreRows& more) {
    const auto context = Context::meta(Mesh{1, 1}, 0);
    const Context::Use use(*context);
    return error_text<ContentsError>([&] {
      ParamTree tree = tree_on(context->mesh(), p);
      ckpt::load_params(
          tree, files, [](const std::string& n) { return n; }, {}, "", nullptr, more);
    });
  };
  EXPECT_EQ(error_with(model, {}), "no error");
  EXPECT_THAT(error_with(small_model(8, 11), {}), ::testing::HasSubstr("gives (11, 8)"));
  EXPECT_EQ(error_with(small_model(8, 11), {10, 11}), "no error");
  sys::set_hook({});
}

i64 status_bytes(const char* key) {
  std::ifstream f("/proc/self/status");
  for (std::string line; std::getline(f, line);)
    if (line.starts_with(key)) return std::atoll(line.c_str() + std::strlen(key)) * 1024;
  return 0;
}

#if !REDCO_SANITIZED  // freed memory stays with the sanitizer
// Peak memory during loading, above the process's memory before, is at most 1.1 times the shard: each rank
// reads its own part through a bounded buffer. Ranks are threads here, so the shards of two ranks are the
// whole model. A child process has its own peak.
TEST(ParamsIo, LoadingTakesNoMoreThanTheShard) {
  const ModelParams model = small_model(2048, 24000);
  test::TempDir dir;
  on_mesh({1, 1}, [&](Context& c) {
    ParamTree tree = tree_on(c.mesh(), model);
    for (Tensor& t : tree.values()) t = full(t.shape(), 0.5);
    save(dir.path(), tree);
  });
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{1, 2}}) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      i64 shards = 0;
      on_mesh(mesh, [&](Context& c) {
        c.world().barrier();
        const i64 before = status_bytes("VmRSS:");
        ParamTree tree = tree_on(c.mesh(), model);
        load(dir.path(), tree);
        c.world().barrier();
        if (c.rank() != 0) return;
        for (const ParamSpec& s : model.specs) shards += numel(s.shape) * 4;
        const i64 grown = status_bytes("VmHWM:") - before;
        // The buffer of 16 MiB a rank is part of the 10 %: the model has 260 MB.
        if (grown > shards * 11 / 10 || grown < shards * 9 / 10) {
          std::fprintf(stderr, "grown %lld of %lld\n", static_cast<long long>(grown),
                       static_cast<long long>(shards));
          _exit(1);
        }
      });
      _exit(shards > 0 ? 0 : 2);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "mesh " << mesh.dp() << "x" << mesh.mp();
  }
}
#endif

}  // namespace
}  // namespace redco

// Saves on a failing disk, with the failure before and after the checkpoint is published.
#include "train/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/syscalls.h"
#include "ckpt/verify_checkpoint.h"
#include "models/spec_builder.h"
#include "support/error_text.h"
#include "support/ranks.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using redco::testing::on_mesh;
using sys::Call;
using sys::Op;
using sys::Verdict;
using test::TempDir;

class SaveCheckpoint : public ::testing::Test {
 protected:
  void SetUp() override { set_log_level(LogLevel::error); }
  void TearDown() override {
    set_log_level(LogLevel::info);
    sys::set_hook({});
  }
  void save(const std::string& workdir, i64 step) {
    ModelParams p;
    SpecBuilder(p).linear("a.fc1", 4, 4, false, 1);
    const ParamTree tree = make_params(p, shard_specs(p.specs, Context::current().mesh().mp()).layouts);
    CheckpointContents what{.params = tree, .job_yaml = "train: {}\n"};
    what.run.id = std::string(32, 'a');
    save_checkpoint(join_path(workdir, "checkpoints"), what,
                    {.step = step, .global_batch_size = 1, .n_examples = 1}, {"loss"}, 1);
  }
};

TEST_F(SaveCheckpoint, TheSavedFolderHasTheJobAndTheRun) {
  TempDir dir(TempDir::in_memory);
  on_mesh({2, 1}, [&](Context&) { save(dir.path(), 10); });
  const std::string folder = dir / "checkpoints/last";
  EXPECT_EQ(test::slurp(folder + "/training/job.yaml"), "train: {}\n");
  const ckpt::Manifest m = ckpt::read_manifest(folder);
  EXPECT_EQ(m.run.id, std::string(32, 'a'));
  EXPECT_TRUE(std::any_of(m.files.begin(), m.files.end(),
                          [](const ckpt::FileRecord& f) { return f.path == "training/job.yaml"; }));
}

// A checkpoint in bf16 has the trained parameters in fp32, with the optimizer's state, unless no run can
// resume from it.
TEST_F(SaveCheckpoint, RoundedWeightsHaveMasters) {
  ModelParams p;
  SpecBuilder(p).linear("a.fc1", 5, 3, true, 1);
  for (const bool resumable : {true, false}) {
    TempDir dir(TempDir::in_memory);
    const std::string folder = dir / "checkpoints/last";
    std::vector<double> saved;
    const auto tree = [&](u64 seed) {
      ParamTree t = make_params(p, shard_specs(p.specs, Context::current().mesh().mp()).layouts);
      initialize(t, seed);
      return t;
    };
    on_mesh({2, 2}, [&](Context& c) {
      CheckpointContents what{.params = tree(1), .resumable = resumable, .dtype = ckpt::StoredType::bf16};
      what.run.id = std::string(32, 'a');
      const auto values = to_values(what.params["a.fc1.weight"]);
      if (c.rank() == 0) saved = values;
      save_checkpoint(dir / "checkpoints", what, {.step = 10, .global_batch_size = 1, .n_examples = 1}, {},
                      1);
    });
    EXPECT_EQ(has_optimizer_state(folder), resumable);
    on_mesh({1, 3}, [&](Context&) {
      CheckpointContents what{.params = tree(2)};
      load_checkpoint_tensors(folder, what);
      const auto loaded = to_values(what.params["a.fc1.weight"]);
      for (size_t i = 0; i < loaded.size(); ++i) {
        if (resumable) EXPECT_EQ(loaded[i], saved[i]);
        EXPECT_NEAR(loaded[i], saved[i], std::abs(saved[i]) / 256);
      }
      EXPECT_EQ(loaded == saved, resumable);
    });
  }
}

TEST_F(SaveCheckpoint, AFaultAtEveryCallAfterThePublishIsAWarning) {
  int faults = 0;
  for (bool finished = false; !finished;) {
    TempDir dir(TempDir::in_memory);
    on_mesh({1, 1}, [&](Context&) {
      save(dir.path(), 10);
      // Published: the rename, and the sync of the folder.
      enum { before, renamed, synced } state = before;
      int after = 0;
      sys::set_hook([&](const Call& call) {
        if (state == synced && ++after == faults + 1) return Verdict{Verdict::fail, EIO};
        if (state == renamed && call.op == Op::close) state = synced;
        if (call.op == Op::rename && call.to.ends_with("/step-00000020")) state = renamed;
        return call.op == Op::sync ? Verdict{Verdict::skip} : Verdict{};
      });
      EXPECT_NO_THROW(save(dir.path(), 20)) << "fault " << faults;
      sys::set_hook({});
      finished = after < faults + 1;
      const std::string folder = dir / "checkpoints/step-00000020";
      EXPECT_NO_THROW(ckpt::verify_checkpoint(folder, ckpt::Part::training, "checkpoint.resume"));
      const auto found = ckpt::CheckpointFolder(dir / "checkpoints").find_newest("checkpoint.resume");
      EXPECT_EQ(found.step, 20);
      // The next save repairs everything.
      save(dir.path(), 30);
      EXPECT_THAT(list_dir(dir / "checkpoints"), ::testing::ElementsAre("best-loss", "last", "step-00000030"))
          << "fault " << faults;
    });
    ++faults;
  }
  EXPECT_GT(faults, 20);
}

TEST_F(SaveCheckpoint, AWorkdirThatIsRemovedIsAnIoErrorOnAllRanks) {
  TempDir dir(TempDir::in_memory);
  make_dirs(dir / "run");
  std::atomic<int> io{0};
  on_mesh({2, 1}, [&](Context&) {
    EXPECT_NO_THROW(save(dir / "run", 10));
    Context::current().world().on_first([&] { remove_tree(dir / "run"); });
    io += error_text<IoError>([&] { save(dir / "run", 20); }).find("run is gone") != std::string::npos;
    // Also during a save.
    Context::current().world().on_first([&] {
      make_dirs(dir / "run");
      sys::set_hook([&](const Call& call) {
        return call.creates && call.op == Op::open && call.path.find("model.safetensors") != std::string::npos
                   ? Verdict{Verdict::fail, ENOENT}
                   : Verdict{};
      });
    });
    io += error_text<IoError>([&] { save(dir / "run", 20); }).find("moved or removed") != std::string::npos;
  });
  EXPECT_EQ(io, 4);
}

}  // namespace
}  // namespace redco
